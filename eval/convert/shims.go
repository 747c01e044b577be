package convert

import _ "embed"

// pyRunner runs unittest classes and test_ functions without pytest, and fails where there was none.
//
//go:embed run_tests.py
var pyRunner string

// jsRunner is the part of jest that exercises use.
//
//go:embed run_tests.mjs
var jsRunner string
