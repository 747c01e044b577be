package verify

// Check describes a verifier as a project's configuration does.
type Check struct {
	Name  string `json:"name"`
	Type  string `json:"type"`            // one of CheckTypes
	Level Level  `json:"level,omitempty"` // 0 is that of the type
	Run   string `json:"run,omitempty"`   // a shell line

	Paths    []string `json:"paths,omitempty"`     // diff_bound: what may change; forbidden: what may not; schema: the documents
	Schema   string   `json:"schema,omitempty"`    // schema: a file with a JSON Schema
	MaxFiles int      `json:"max_files,omitempty"` // diff_bound: how many files may change; 0 is any number
	Input    string   `json:"input,omitempty"`     // metamorphic: a file whose lines Run reads
	Compare  string   `json:"compare,omitempty"`   // metamorphic: "equal" (the default) or "lines", in any order

	Rubric       string  `json:"rubric,omitempty"`        // judge: a file with criteria, scale and examples
	Calibration  string  `json:"calibration,omitempty"`   // judge: a file with human labels, JSON lines
	MinAgreement float64 `json:"min_agreement,omitempty"` // judge: below it no judgement is taken; 0 is 0.8
	Ask          string  `json:"ask,omitempty"`           // person: the question
}

// CheckTypes are the types of a Check with their level.
var CheckTypes = map[string]Level{
	"command": Deterministic, "compile": Deterministic, "tests": Deterministic, "lint": Deterministic, "types": Deterministic, "format": Deterministic,
	"schema": Deterministic, "diff_bound": Deterministic, "forbidden": Deterministic, "property": Property, "metamorphic": Property, "judge": Judged, "person": Person,
}
