package redact

// Scrub hides the secrets of a text for good: nothing maps its placeholders back. Environ is as in Config.
func Scrub(text string, environ []string) string {
	r, err := Open(Config{Environ: environ})
	if err != nil {
		return "(left out, since its secrets cannot be hidden: " + err.Error() + ")"
	}
	return r.Text(text)
}
