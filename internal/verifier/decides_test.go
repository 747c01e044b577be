package verifier

import "testing"

func TestDecides(t *testing.T) {
	for file, want := range map[string]bool{
		"bill_test.go": true, "a/b/x_test.go": true, "test_a.py": true, "a_test.py": true, "conftest.py": true, "src/x.test.ts": true, "x.spec.js": true,
		"tests/data.json": true, "pkg/testdata/golden": true, "__tests__/a.js": true, "Makefile": true, "sub/package.json": true,
		"bill.go": false, "go.mod": false, "latest.go": false, "contest.py": false, "testing.go": false, "attest/a.go": false, "README.md": false,
	} {
		if Decides(file) != want {
			t.Errorf("%s: %v", file, !want)
		}
	}
}
