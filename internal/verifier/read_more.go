package verifier

import (
	"encoding/xml"
	"strings"

	"belay/verify"
)

var (
	jestTests   = pattern(`^Tests:\s+(.*\btotal)`)
	jestNone    = pattern(`^No tests found`)
	jestTest    = pattern(`^\s*● (.+?)\s*$`)
	jestAt      = pattern(`\(?([^\s()]+\.(?:test|spec)\.[cm]?[jt]sx?|[^\s()]*__tests__/[^\s():]+):(\d+):\d+\)?`)
	expectedIs  = pattern(`^\s*(?:Expected[^:]*|expected): (.+?),?\s*$`)
	receivedIs  = pattern(`^\s*(?:Received[^:]*|actual): (.+?),?\s*$`)
	vitestTests = pattern(`^\s*Tests\s{2,}(.+?)\s*\((\d+)\)`)
	vitestNone  = pattern(`^\s*No test files found`)
	vitestFail  = pattern(`^\s*FAIL\s+(\S+?)(?: > (.+))?$`)
	vitestAt    = pattern(`❯ (\S+?):(\d+):\d+`)
	vitestSaid  = pattern(`AssertionError: (expected (.+?) to (?:be|equal|deeply equal|strictly equal) (.+?))(?: //.*)?$`)
)

func readJest(output string) Reading {
	r := Reading{}
	var f *verify.Failure
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case jestTests().MatchString(line):
			n := counted(jestTests().FindStringSubmatch(line)[1])
			r.Runner, r.Tests = "jest", &verify.Tests{Run: n["passed"] + n["failed"], Failed: n["failed"], Skipped: n["skipped"] + n["todo"]}
		case jestNone().MatchString(line):
			r.Runner, r.Tests = "jest", &verify.Tests{}
		case f == nil && jestTest().MatchString(line):
			f = &verify.Failure{Test: jestTest().FindStringSubmatch(line)[1]}
		case f != nil && jestTest().MatchString(line):
			// another test: what the first one lacks stays missing
		case f != nil && f.Expected == "" && expectedIs().MatchString(line):
			f.Expected = expectedIs().FindStringSubmatch(line)[1]
		case f != nil && f.Got == "" && receivedIs().MatchString(line):
			f.Got = receivedIs().FindStringSubmatch(line)[1]
		case f != nil && f.File == "" && jestAt().MatchString(line):
			m := jestAt().FindStringSubmatch(line)
			f.File, f.Line = m[1], number(m[2])
		}
	}
	if r.Runner == "" {
		return Reading{}
	}
	r.Failure = f
	return r
}

func readVitest(output string) Reading {
	r := Reading{}
	var f *verify.Failure
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case vitestTests().MatchString(line):
			n := counted(vitestTests().FindStringSubmatch(line)[1])
			r.Runner, r.Tests = "vitest", &verify.Tests{Run: n["passed"] + n["failed"], Failed: n["failed"], Skipped: n["skipped"] + n["todo"]}
		case vitestNone().MatchString(line):
			r.Runner, r.Tests = "vitest", &verify.Tests{}
		case f == nil && vitestFail().MatchString(line):
			m := vitestFail().FindStringSubmatch(line)
			f = &verify.Failure{File: m[1], Test: m[2]}
		case f != nil && f.Message == "" && vitestSaid().MatchString(line):
			m := vitestSaid().FindStringSubmatch(line)
			f.Message, f.Got, f.Expected = m[1], m[2], m[3]
		case f != nil && f.Line == 0 && vitestAt().MatchString(line):
			m := vitestAt().FindStringSubmatch(line)
			f.File, f.Line = m[1], number(m[2])
		}
	}
	if r.Runner == "" {
		return Reading{}
	}
	r.Failure = f
	return r
}

var (
	cargoResult = pattern(`^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored`)
	cargoFailed = pattern(`^test (\S+) \.\.\. FAILED`)
	cargoPanic  = pattern(`^thread '([^']+)'(?: \(\d+\))? panicked at (?:'(.*)', )?([^:\s]+):(\d+):\d+:?$`)
	cargoSide   = pattern(`^\s+(left|right): (.+?),?$`)
)

func readCargo(output string) Reading {
	r := Reading{}
	var f *verify.Failure
	panicked := 0 // lines since the first panic
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		if panicked > 0 {
			panicked++
		}
		switch {
		case cargoResult().MatchString(line):
			m := cargoResult().FindStringSubmatch(line)
			if r.Tests == nil {
				r.Tests = &verify.Tests{}
			}
			r.Runner = "cargo test"
			r.Tests.Run += number(m[1]) + number(m[2])
			r.Tests.Failed += number(m[2])
			r.Tests.Skipped += number(m[3])
		case f == nil && cargoFailed().MatchString(line):
			f = &verify.Failure{Test: cargoFailed().FindStringSubmatch(line)[1]}
		case panicked == 0 && cargoPanic().MatchString(line):
			m := cargoPanic().FindStringSubmatch(line)
			f = &verify.Failure{Test: m[1], Message: m[2], File: m[3], Line: number(m[4])}
			panicked = 1
		case panicked == 2 && f.Message == "":
			f.Message = strings.TrimSpace(line)
		case panicked > 0 && panicked < 6 && cargoSide().MatchString(line):
			m := cargoSide().FindStringSubmatch(line)
			if m[1] == "left" {
				f.Got = m[2]
			} else {
				f.Expected = m[2]
			}
		}
	}
	if r.Runner == "" {
		return Reading{}
	}
	r.Failure = f
	return r
}

// maxXML bounds what is read as XML, in bytes.
const maxXML = 4 << 20

// readJUnit reads a JUnit report that stands in the output.
func readJUnit(output string) Reading {
	start := strings.Index(output, "<testsuite")
	if start < 0 {
		return Reading{}
	}
	output = output[start:]
	if len(output) > maxXML {
		output = output[:maxXML]
	}
	dec := xml.NewDecoder(strings.NewReader(output))
	dec.Strict = false
	r := Reading{Tests: &verify.Tests{}}
	var at, f *verify.Failure
	inFailure := false
	depth := 0
	for {
		token, err := dec.Token()
		if err != nil {
			break // cut or damaged: what was read counts
		}
		switch t := token.(type) {
		case xml.StartElement:
			depth++
			attr := map[string]string{}
			for _, a := range t.Attr {
				attr[a.Name.Local] = a.Value
			}
			switch t.Name.Local {
			case "testcase":
				name := attr["name"]
				if attr["classname"] != "" {
					name = attr["classname"] + "." + name
				}
				at = &verify.Failure{Test: name, File: attr["file"], Line: number(attr["line"])}
				r.Runner = "junit"
				r.Tests.Run++
			case "failure", "error":
				if at != nil {
					r.Tests.Failed++
					if f == nil {
						f = at
						f.Message = attr["message"]
						inFailure = true
					}
				}
			case "skipped":
				if at != nil {
					r.Tests.Skipped++
					r.Tests.Run--
				}
			case "testsuite", "testsuites":
				r.Runner = "junit"
			}
		case xml.CharData:
			if inFailure && f.Message == "" {
				f.Message, _, _ = strings.Cut(strings.TrimSpace(string(t)), "\n")
			}
		case xml.EndElement:
			depth--
			switch t.Name.Local {
			case "testcase":
				at = nil
			case "failure", "error":
				inFailure = false
			}
		}
		if depth == 0 {
			break
		}
	}
	if r.Runner == "" {
		return Reading{}
	}
	if f != nil {
		compared(f)
	}
	r.Failure = f
	return r
}

var (
	tapVersion = pattern(`^TAP version \d+`)
	tapPlan    = pattern(`^1\.\.(\d+)`)
	tapPoint   = pattern(`^(\s*)(not ok|ok)\b(?: (\d+))?(?: - | )?(.*?)\s*(# (?i:skip|todo)\b.*)?$`)
	tapAt      = pattern(`^\s+(?:location|at): '?(?:file://)?([^'\s]+?):(\d+)(?::\d+)?'?$`)
	tapError   = pattern(`^\s+(?:error|message): ['"]?(.*?)['"]?$`)
	nodeCount  = pattern(`^(?:#|ℹ) (tests|pass|fail|cancelled|skipped|todo) (\d+)$`)
)

// readTAP reads the Test Anything Protocol, also as node's runner writes it, which ends with counts of its own.
func readTAP(output string) Reading {
	r := Reading{}
	tests := verify.Tests{}
	var f *verify.Failure
	open, plan := false, false
	node := map[string]int{}
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case tapVersion().MatchString(line), tapPlan().MatchString(line):
			plan = true
		case tapPoint().MatchString(line):
			m := tapPoint().FindStringSubmatch(line)
			if m[3] == "" && !plan {
				continue // "ok" as a word
			}
			open = false
			if m[1] != "" {
				if m[2] == "not ok" && m[5] == "" && (f == nil || f.File == "") {
					f, open = &verify.Failure{Test: m[4]}, true
				}
				continue // a subtest counts in its parent
			}
			switch {
			case m[5] != "":
				tests.Skipped++
			case m[2] == "ok":
				tests.Run++
			default:
				tests.Run, tests.Failed = tests.Run+1, tests.Failed+1
				if f == nil {
					f, open = &verify.Failure{Test: m[4]}, true
				}
			}
		case nodeCount().MatchString(line):
			m := nodeCount().FindStringSubmatch(line)
			node[m[1]] = number(m[2])
		case open && f.File == "" && tapAt().MatchString(line):
			m := tapAt().FindStringSubmatch(line)
			f.File, f.Line = m[1], number(m[2])
		case open && f.Message == "" && tapError().MatchString(line):
			f.Message = tapError().FindStringSubmatch(line)[1]
		case open && f.Expected == "" && expectedIs().MatchString(line):
			f.Expected = expectedIs().FindStringSubmatch(line)[1]
		case open && f.Got == "" && receivedIs().MatchString(line):
			f.Got = receivedIs().FindStringSubmatch(line)[1]
		}
	}
	if !plan {
		return Reading{}
	}
	r = Reading{Runner: "tap", Tests: &tests, Failure: f}
	if _, counts := node["tests"]; counts {
		r.Runner = "node test"
		r.Tests = &verify.Tests{Run: node["pass"] + node["fail"] + node["cancelled"], Failed: node["fail"] + node["cancelled"], Skipped: node["skipped"] + node["todo"]}
	}
	return r
}

var (
	nodeFailed = pattern(`^\s*✖ (.+?) \([\d.]+ms\)$`)
	nodeAt     = pattern(`^test at (\S+?):(\d+):\d+$`)
	nodeSaid   = pattern(`^\s+(?:\w*Error)(?: \[\w+\])?: (.*)$`)
)

// readNodeSpec reads what node's runner prints on a terminal.
func readNodeSpec(output string) Reading {
	if !strings.Contains(output, "ℹ tests ") {
		return Reading{}
	}
	n := map[string]int{}
	var f *verify.Failure
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case nodeCount().MatchString(line):
			m := nodeCount().FindStringSubmatch(line)
			n[m[1]] = number(m[2])
		case f == nil && nodeFailed().MatchString(line):
			f = &verify.Failure{Test: nodeFailed().FindStringSubmatch(line)[1]}
		case f != nil && f.File == "" && nodeAt().MatchString(line):
			m := nodeAt().FindStringSubmatch(line)
			f.File, f.Line = m[1], number(m[2])
		case f != nil && f.Message == "" && nodeSaid().MatchString(line):
			f.Message = nodeSaid().FindStringSubmatch(line)[1]
		case f != nil && f.Expected == "" && expectedIs().MatchString(line):
			f.Expected = expectedIs().FindStringSubmatch(line)[1]
		case f != nil && f.Got == "" && receivedIs().MatchString(line):
			f.Got = receivedIs().FindStringSubmatch(line)[1]
		}
	}
	return Reading{Runner: "node test", Failure: f,
		Tests: &verify.Tests{Run: n["pass"] + n["fail"] + n["cancelled"], Failed: n["fail"] + n["cancelled"], Skipped: n["skipped"] + n["todo"]}}
}

var (
	gccError  = pattern(`^(?:\./)?([\w][\w./@+-]*\.\w+):(\d+)(?::\d+)?: (?:(?:fatal )?error(?: \S+)?: )?(.+)$`)
	tscError  = pattern(`^([\w./@+-]+\.\w+)\((\d+),\d+\): error (.+)$`)
	rustError = pattern(`^error(?:\[E\d+\])?: (.+)$`)
	rustAt    = pattern(`^\s*--> ([^:\s]+):(\d+):\d+`)
	warning   = pattern(`^(?:warning|note|info|remark)\b`)
)

// readDiagnostics reads the first error of a compiler or linter.
func readDiagnostics(output string) Reading {
	rust := ""
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		if m := tscError().FindStringSubmatch(line); m != nil {
			return Reading{Runner: "compiler", Failure: &verify.Failure{File: m[1], Line: number(m[2]), Message: m[3]}}
		}
		if m := gccError().FindStringSubmatch(strings.TrimPrefix(line, "vet: ")); m != nil && !warning().MatchString(m[3]) {
			return Reading{Runner: "compiler", Failure: &verify.Failure{File: m[1], Line: number(m[2]), Message: m[3]}}
		}
		if m := rustError().FindStringSubmatch(line); m != nil && rust == "" {
			rust = m[1]
		}
		if m := rustAt().FindStringSubmatch(line); m != nil && rust != "" {
			return Reading{Runner: "compiler", Failure: &verify.Failure{File: m[1], Line: number(m[2]), Message: rust}}
		}
	}
	return Reading{}
}
