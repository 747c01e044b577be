package verifier

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"belay/verify"
)

// Reading is what the output of a known runner says.
type Reading struct {
	Runner  string          // "go test"; "" where the output is of no known kind
	Tests   *verify.Tests   // nil where the output has no counts
	Failure *verify.Failure // the first one
}

// Read understands what test runners and compilers print: go test, pytest, unittest, jest, vitest, node's runner,
// cargo, JUnit XML, TAP and diagnostics as gcc and tsc write them. An output may hold several of them, one after
// the other: then counts add up, and the first failure is the one that is told.
//
// A program under test can print what a runner would. Read says what the output says; that fewer tests were executed
// than before, or none, is told from it, and it is never the only thing that a proof rests on: the exit code is.
func Read(output string) Reading {
	var all Reading
	for _, read := range []func(string) Reading{readGo, readPytest, readUnittest, readJest, readVitest, readCargo, readJUnit, readTAP, readNodeSpec} {
		r := read(output)
		if r.Runner == "" {
			continue
		}
		if all.Runner == "" {
			all = r
			continue
		}
		if all.Failure == nil {
			all.Failure = r.Failure
		}
		if all.Tests == nil {
			all.Tests = r.Tests
		} else if r.Tests != nil {
			sum := verify.Tests{Run: all.Tests.Run + r.Tests.Run, Failed: all.Tests.Failed + r.Tests.Failed, Skipped: all.Tests.Skipped + r.Tests.Skipped}
			all.Tests = &sum
		}
	}
	if all.Failure == nil {
		if d := readDiagnostics(output); d.Failure != nil {
			all.Failure = d.Failure
			if all.Runner == "" {
				all.Runner = d.Runner
			}
		}
	}
	return all
}

// pattern compiles a regular expression when it is first used.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1<<30 {
		return 0
	}
	return n
}

// counted reads "3 passed, 1 failed" from a line: the number before each word.
func counted(line string) map[string]int {
	found := map[string]int{}
	for _, m := range countWords().FindAllStringSubmatch(line, -1) {
		found[strings.ToLower(m[2])] += number(m[1])
	}
	return found
}

var (
	countWords = pattern(`\b(\d+) (passed|failed|errors?|skipped|xfailed|xpassed|deselected|todo|total|ignored|pending)\b`)

	goDone  = pattern(`^(\s*)--- (PASS|FAIL|SKIP): (\S+) \(`)
	goOK    = pattern(`^ok  \s*\t\S+\t`)
	goFail  = pattern(`^FAIL\t\S+\t?`)
	goNone  = pattern(`^\?   \s*\t\S+\t\[no test files\]`)
	goAt    = pattern(`^\s+([\w./@-]+\.go):(\d+): ?(.*)$`)
	gotWant = pattern(`(?i)\bgot:?\s+(.+?)(?:[,;]|\s+-)?\s+(?:want|expected|wanted):?\s+(.+?)\s*$`)
	wantGot = pattern(`(?i)\b(?:want(?:ed)?|expected):?\s+(.+?)(?:[,;]|\s+but)?\s+(?:got|actual|was|received):?\s+(.+?)\s*$`)
	isWant  = pattern(`(?i)(?:\bis|=)\s+(\S+?),? want(?:ed)? (\S+)`)
)

// compared fills in what was expected and got, where a message says so in one of the usual ways.
func compared(f *verify.Failure) {
	if f.Expected != "" || f.Got != "" {
		return
	}
	if m := gotWant().FindStringSubmatch(f.Message); m != nil {
		f.Got, f.Expected = m[1], m[2]
	} else if m := wantGot().FindStringSubmatch(f.Message); m != nil {
		f.Expected, f.Got = m[1], m[2]
	} else if m := isWant().FindStringSubmatch(f.Message); m != nil {
		f.Got, f.Expected = m[1], m[2]
	}
}

// readGo reads go test, with and without -v. Without -v it counts packages, since nothing else is printed.
func readGo(output string) Reading {
	var tests verify.Tests
	packages, none, verbose, known := 0, 0, false, false
	var first *verify.Failure
	failed := ""
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "=== RUN "):
			verbose, known = true, true
		case goDone().MatchString(line):
			m := goDone().FindStringSubmatch(line)
			known = true
			switch m[2] {
			case "PASS":
				tests.Run++
			case "FAIL":
				tests.Run, tests.Failed = tests.Run+1, tests.Failed+1
				if first == nil || (first.File == "" && strings.HasPrefix(m[3], first.Test+"/")) {
					first = &verify.Failure{Test: m[3]}
				}
				failed = m[3]
			case "SKIP":
				tests.Skipped++
			}
		case goOK().MatchString(line):
			known = true
			if !strings.Contains(line, "[no tests to run]") {
				packages++
			}
		case goNone().MatchString(line):
			known = true
			none++
		case goFail().MatchString(line):
			known = true
			if strings.Contains(line, "[build failed]") && first == nil {
				if d := readDiagnostics(output); d.Failure != nil {
					first = d.Failure
				}
			}
		case !verbose && first != nil && first.File == "" && (failed == first.Test || strings.HasPrefix(failed, first.Test)):
			if m := goAt().FindStringSubmatch(line); m != nil {
				first.File, first.Line, first.Message = m[1], number(m[2]), m[3]
				compared(first)
			}
		}
	}
	if first != nil && first.File == "" && first.Test != "" { // with -v the messages stand before the verdict
		run := strings.Index(output, "=== RUN   "+first.Test+"\n")
		if run >= 0 {
			for line := range strings.Lines(output[run:]) {
				if m := goAt().FindStringSubmatch(strings.TrimRight(line, "\r\n")); m != nil {
					first.File, first.Line, first.Message = m[1], number(m[2]), m[3]
					compared(first)
					break
				}
				if goDone().MatchString(line) {
					break
				}
			}
		}
	}
	if !known {
		return Reading{}
	}
	if !verbose && tests.Run == 0 {
		tests.Run = packages
	}
	return Reading{Runner: "go test", Tests: &tests, Failure: first}
}

var (
	pytestEnd   = pattern(`^(?:=+ )?((?:\d+ (?:passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?)(?:, )?)+) in [\d.]+s`)
	pytestNone  = pattern(`^(?:=+ )?no tests (?:ran|collected)`)
	pytestShort = pattern(`^(?:FAILED|ERROR) (\S+?\.py)(?:::(\S+))?(?: - (.*))?$`)
	pytestAt    = pattern(`^(\S+\.py):(\d+): (\w*(?:Error|Exception|Failed)\w*|in \w+)`)
	pytestE     = pattern(`^E\s+(.*)$`)
	pytestDiff  = pattern(`assert (.+?) == (.+?)$`)
)

func readPytest(output string) Reading {
	r := Reading{}
	var message string
	var f verify.Failure
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case pytestEnd().MatchString(line):
			n := counted(pytestEnd().FindStringSubmatch(line)[1])
			bad := n["failed"] + n["error"] + n["errors"]
			r.Runner = "pytest"
			r.Tests = &verify.Tests{Run: n["passed"] + n["xpassed"] + bad, Failed: bad, Skipped: n["skipped"] + n["xfailed"]}
		case pytestNone().MatchString(line):
			r.Runner, r.Tests = "pytest", &verify.Tests{}
		case message == "" && pytestE().MatchString(line):
			message = strings.TrimSpace(pytestE().FindStringSubmatch(line)[1])
		case f.File == "" && pytestAt().MatchString(line):
			m := pytestAt().FindStringSubmatch(line)
			f.File, f.Line = m[1], number(m[2])
		case f.Test == "" && pytestShort().MatchString(line):
			m := pytestShort().FindStringSubmatch(line)
			f.Test = m[2]
			if f.File == "" {
				f.File = m[1]
			}
			if message == "" {
				message = m[3]
			}
		}
	}
	if r.Runner == "" {
		return Reading{}
	}
	if r.Tests.Failed > 0 {
		f.Message = message
		if m := pytestDiff().FindStringSubmatch(message); m != nil {
			f.Got, f.Expected = m[1], m[2]
		}
		r.Failure = &f
	}
	return r
}

var (
	unitRan     = pattern(`^Ran (\d+) tests? in [\d.]+s`)
	unitNone    = pattern(`^NO TESTS RAN`)
	unitOptions = pattern(`(failures|errors|skipped|expected failures|unexpected successes)=(\d+)`)
	unitFailed  = pattern(`^(?:FAIL|ERROR): (\S+)`)
	unitAt      = pattern(`^  File "([^"]+)", line (\d+), in (\S+)`)
	unitError   = pattern(`^(\w[\w.]*(?:Error|Exception|Exit|Interrupt))(?:: (.*))?$`)
	unitDiff    = pattern(`^(.+?) (?:!=|not (?:less|greater) than|is not) (.+?)(?: : .*)?$`)
)

func readUnittest(output string) Reading {
	r := Reading{}
	var f *verify.Failure
	done := false // the first failure is complete
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case unitRan().MatchString(line):
			n := number(unitRan().FindStringSubmatch(line)[1])
			if r.Tests == nil {
				r.Tests = &verify.Tests{}
			}
			r.Runner, r.Tests.Run = "unittest", r.Tests.Run+n
		case r.Tests != nil && (strings.HasPrefix(line, "OK") || strings.HasPrefix(line, "FAILED (")):
			for _, m := range unitOptions().FindAllStringSubmatch(line, -1) {
				switch n := number(m[2]); m[1] {
				case "failures", "errors", "unexpected successes":
					r.Tests.Failed += n
				default:
					r.Tests.Skipped += n
					r.Tests.Run = max(0, r.Tests.Run-n)
				}
			}
		case unitNone().MatchString(line) && r.Tests == nil:
			r.Runner, r.Tests = "unittest", &verify.Tests{}
		case unitFailed().MatchString(line):
			if f == nil {
				f = &verify.Failure{Test: unitFailed().FindStringSubmatch(line)[1]}
			} else {
				done = true
			}
		case f != nil && !done && unitAt().MatchString(line):
			m := unitAt().FindStringSubmatch(line)
			if f.File == "" || m[3] == f.Test {
				f.File, f.Line = m[1], number(m[2])
			}
		case f != nil && !done && f.Message == "" && unitError().MatchString(line):
			m := unitError().FindStringSubmatch(line)
			f.Message = m[1]
			if m[2] != "" {
				f.Message += ": " + m[2]
			}
			if d := unitDiff().FindStringSubmatch(m[2]); d != nil && m[1] == "AssertionError" {
				f.Got, f.Expected = d[1], d[2]
			}
			done = true
		}
	}
	if r.Runner == "" {
		return Reading{}
	}
	r.Failure = f
	return r
}
