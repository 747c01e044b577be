package journal

// TypeCircumvention names what a run did to the files that judge it.
const TypeCircumvention Type = "circumvention"

// Circumvention is what a run did that could make a verifier pass without the work: written when a completion is judged.
type Circumvention struct {
	Findings []Evasion `json:"findings"`
}

// Evasion is one such thing.
type Evasion struct {
	Kind string `json:"kind"` // "skip added", "assertion removed", …
	File string `json:"file"` // relative to the workspace
	Line int    `json:"line,omitempty"`
	Text string `json:"text,omitempty"` // the line, or what became of the file
	// Decisive findings keep a run from being proved: a person has to look. The others are undone while the tests
	// run as they were before.
	Decisive bool `json:"decisive,omitempty"`
}

// TestCounts is what a known test runner executed.
type TestCounts struct {
	Run     int `json:"run"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
}

// FailedAt is the first failure in a verifier's output.
type FailedAt struct {
	Test     string `json:"test,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Message  string `json:"message,omitempty"`
	Expected string `json:"expected,omitempty"`
	Got      string `json:"got,omitempty"`
}

// Input is something that a verifier could read and that no commit of the tree holds.
type Input struct {
	Path    string `json:"path"` // relative to the workspace; a folder ends with a slash
	Digest  string `json:"digest"`
	Changed bool   `json:"changed,omitempty"` // the run wrote it
}
