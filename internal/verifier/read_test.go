package verifier

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/verify"
)

// outputs are as the runners print them.
var outputs = []struct {
	name, output string
	want         Reading
}{
	{"go", "--- FAIL: TestAdd (0.00s)\n    add_test.go:7: Add(1, 2) = 3, want 4\nFAIL\nFAIL\tx\t0.004s\nok  \ty\t0.1s\nFAIL\n",
		Reading{"go test", &verify.Tests{Run: 1, Failed: 1}, &verify.Failure{Test: "TestAdd", File: "add_test.go", Line: 7, Message: "Add(1, 2) = 3, want 4", Expected: "4", Got: "3"}}},
	{"go -v", "=== RUN   TestA\n    a_test.go:4: got 1; want 2\n--- FAIL: TestA (0.00s)\n=== RUN   TestB\n    a_test.go:9: later\n--- SKIP: TestB (0.00s)\n=== RUN   TestC\n--- PASS: TestC (0.00s)\nFAIL\nFAIL\tx\t0.005s\n",
		Reading{"go test", &verify.Tests{Run: 2, Failed: 1, Skipped: 1}, &verify.Failure{Test: "TestA", File: "a_test.go", Line: 4, Message: "got 1; want 2", Expected: "2", Got: "1"}}},
	{"go, packages", "ok  \tx\t0.005s\n?   \ty\t[no test files]\n", Reading{"go test", &verify.Tests{Run: 1}, nil}},
	{"go, none", "?   \tx\t[no test files]\n", Reading{"go test", &verify.Tests{}, nil}},
	{"go, does not build", "# x\n./a.go:3:9: undefined: y\nFAIL\tx [build failed]\nFAIL\n", Reading{"go test", &verify.Tests{}, &verify.Failure{File: "a.go", Line: 3, Message: "undefined: y"}}},
	{"pytest", "    def test_add():\n>       assert add(1, 2) == 4\nE       assert 3 == 4\nE        +  where 3 = add(1, 2)\n\ntest_a.py:4: AssertionError\n=========== short test summary info ============\nFAILED test_a.py::test_add - assert 3 == 4\n========= 1 failed, 2 passed, 1 skipped, 1 xfailed in 0.03s =========\n",
		Reading{"pytest", &verify.Tests{Run: 3, Failed: 1, Skipped: 2}, &verify.Failure{Test: "test_add", File: "test_a.py", Line: 4, Message: "assert 3 == 4", Expected: "4", Got: "3"}}},
	{"pytest -q", "...                 [100%]\n3 passed in 0.01s\n", Reading{"pytest", &verify.Tests{Run: 3}, nil}},
	{"pytest, none", "collected 0 items\n\n===== no tests ran in 0.00s =====\n", Reading{"pytest", &verify.Tests{}, nil}},
	{"unittest", "F.\n======================================================================\nFAIL: test_add (test_a.T.test_add)\n----------------------------------------------------------------------\nTraceback (most recent call last):\n  File \"/w/test_a.py\", line 5, in test_add\n    self.assertEqual(add(1, 2), 4)\nAssertionError: 3 != 4\n\n----------------------------------------------------------------------\nRan 2 tests in 0.000s\n\nFAILED (failures=1)\n",
		Reading{"unittest", &verify.Tests{Run: 2, Failed: 1}, &verify.Failure{Test: "test_add", File: "/w/test_a.py", Line: 5, Message: "AssertionError: 3 != 4", Expected: "4", Got: "3"}}},
	{"unittest, skipped", "s\n----\nRan 1 test in 0.000s\n\nOK (skipped=1)\n", Reading{"unittest", &verify.Tests{Skipped: 1}, nil}},
	{"unittest, none", "\n----\nRan 0 tests in 0.000s\n\nNO TESTS RAN\n", Reading{"unittest", &verify.Tests{}, nil}},
	{"jest", " FAIL  ./sum.test.js\n  ● sum › adds\n\n    expect(received).toBe(expected)\n\n    Expected: 4\n    Received: 3\n\n      at Object.toBe (sum.test.js:4:21)\n\nTest Suites: 1 failed, 1 total\nTests:       1 failed, 1 skipped, 2 passed, 4 total\n",
		Reading{"jest", &verify.Tests{Run: 3, Failed: 1, Skipped: 1}, &verify.Failure{Test: "sum › adds", File: "sum.test.js", Line: 4, Expected: "4", Got: "3"}}},
	{"vitest", " FAIL  sum.test.ts > adds\nAssertionError: expected 3 to be 4 // Object.is equality\n ❯ sum.test.ts:5:18\n\n Test Files  1 failed (1)\n      Tests  1 failed | 2 passed (3)\n",
		Reading{"vitest", &verify.Tests{Run: 3, Failed: 1}, &verify.Failure{Test: "adds", File: "sum.test.ts", Line: 5, Message: "expected 3 to be 4", Expected: "4", Got: "3"}}},
	{"node, tap", "TAP version 13\n# Subtest: one\nnot ok 1 - one\n  ---\n  location: '/w/a.test.js:1:56'\n  error: '1 == 2'\n  expected: 2\n  actual: 1\n  ...\n# Subtest: two\nok 2 - two # SKIP\n1..2\n# tests 2\n# pass 0\n# fail 1\n# cancelled 0\n# skipped 1\n# todo 0\n",
		Reading{"node test", &verify.Tests{Run: 1, Failed: 1, Skipped: 1}, &verify.Failure{Test: "one", File: "/w/a.test.js", Line: 1, Message: "1 == 2", Expected: "2", Got: "1"}}},
	{"node, spec", "✖ one (1.2ms)\nℹ tests 1\nℹ pass 0\nℹ fail 1\nℹ skipped 0\n\n✖ failing tests:\n\ntest at a.test.js:1:56\n✖ one (1.2ms)\n  AssertionError [ERR_ASSERTION]: 1 == 2\n    expected: 2,\n    actual: 1,\n",
		Reading{"node test", &verify.Tests{Run: 1, Failed: 1}, &verify.Failure{Test: "one", File: "a.test.js", Line: 1, Message: "1 == 2", Expected: "2", Got: "1"}}},
	{"cargo", "test tests::adds ... FAILED\n\nfailures:\n\n---- tests::adds stdout ----\nthread 'tests::adds' panicked at src/lib.rs:10:9:\nassertion `left == right` failed\n  left: 3\n right: 4\n\ntest result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out\n",
		Reading{"cargo test", &verify.Tests{Run: 2, Failed: 1, Skipped: 1}, &verify.Failure{Test: "tests::adds", File: "src/lib.rs", Line: 10, Message: "assertion `left == right` failed", Expected: "4", Got: "3"}}},
	{"junit", `<?xml version="1.0"?><testsuite tests="3"><testcase classname="a" name="b" file="a.py" line="3"><failure message="got 1, want 2">trace</failure></testcase><testcase name="c"/><testcase name="d"><skipped/></testcase></testsuite>`,
		Reading{"junit", &verify.Tests{Run: 2, Failed: 1, Skipped: 1}, &verify.Failure{Test: "a.b", File: "a.py", Line: 3, Message: "got 1, want 2", Expected: "2", Got: "1"}}},
	{"tap", "1..3\nok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP no\n", Reading{"tap", &verify.Tests{Run: 2, Failed: 1, Skipped: 1}, &verify.Failure{Test: "b"}}},
	{"gcc", "main.c: In function 'main':\nmain.c:3:1: warning: unused\nmain.c:5:12: error: expected ';'\n", Reading{"compiler", nil, &verify.Failure{File: "main.c", Line: 5, Message: "expected ';'"}}},
	{"tsc", "src/a.ts(12,5): error TS2322: Type 'string' is not assignable to type 'number'.\n", Reading{"compiler", nil, &verify.Failure{File: "src/a.ts", Line: 12, Message: "TS2322: Type 'string' is not assignable to type 'number'."}}},
	{"rustc", "error[E0308]: mismatched types\n --> src/lib.rs:5:9\n", Reading{"compiler", nil, &verify.Failure{File: "src/lib.rs", Line: 5, Message: "mismatched types"}}},
	{"nothing known", "all is well\nok\n", Reading{}},
}

func TestRead(t *testing.T) {
	for _, c := range outputs {
		if d := cmp.Diff(c.want, Read(c.output)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// FuzzRead: each reader takes anything, and never counts below zero or more failures than tests.
func FuzzRead(f *testing.F) {
	for _, c := range outputs {
		f.Add(c.output)
	}
	f.Fuzz(func(t *testing.T, output string) {
		for i, read := range []func(string) Reading{readGo, readPytest, readUnittest, readJest, readVitest, readCargo, readJUnit, readTAP, readNodeSpec, readDiagnostics, Read} {
			r := read(output)
			if r.Runner == "" && (r.Tests != nil || r.Failure != nil) {
				t.Errorf("reader %d knows no runner and says %+v", i, r)
			}
			if r.Tests != nil && (r.Tests.Run < 0 || r.Tests.Skipped < 0 || r.Tests.Failed < 0) {
				t.Errorf("reader %d: %+v", i, *r.Tests)
			}
		}
	})
}

func TestScripts(t *testing.T) {
	for line, want := range map[string][]string{
		"sh check.sh": {"check.sh"}, "./scripts/verify.sh && go vet ./...": {"scripts/verify.sh"}, "python3 app.py | grep 5": nil,
		"FOO=1 timeout 5 python3 -u run_tests.py": {"run_tests.py"}, "node -e 'x'": nil, "grep -q test greeting.txt": nil, "python3 -m checks.all": {"checks/all.py"}, "bash /abs/check.sh": nil, "make -f ci.mk all": {"ci.mk"},
	} {
		if d := cmp.Diff(want, scripts(line)); d != "" {
			t.Errorf("%s: %s", line, d)
		}
	}
}
