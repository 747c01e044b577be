package tool

// MemoryEdit is what a call asks of the memory that outlives a run.
type MemoryEdit struct {
	Command string `json:"command"` // view, create, str_replace, insert, delete or rename
	Scope   string `json:"scope"`   // workspace (also "") or user
	Path    string `json:"path"`    // inside the memory; "" is all of it
	Text    string `json:"text"`
	Old     string `json:"old"`    // for str_replace
	Line    int    `json:"line"`   // for insert: after this line
	To      string `json:"to"`     // for rename
	Source  string `json:"source"` // "tools" where the content came from tool output
}
