package harness

import (
	"fmt"
	"os"

	"belay/internal/keys"
	"belay/internal/redact"
	"belay/journal"
)

// openSecrets makes what hides the secrets of a run. It knows every key that belay could send, whichever model is
// asked, and the secrets of its own environment.
func openSecrets(home, runID string, files map[string]string, known ...string) (*redact.Redactor, error) {
	for _, provider := range []string{"anthropic", "openai"} {
		if key, err := keys.Find(provider, keys.Config{Files: files}); err == nil { // where it cannot be read, it is not sent either
			known = append(known, key.Reveal())
		}
	}
	secrets, err := redact.Open(redact.Config{Home: home, RunID: runID, Known: known, Environ: os.Environ()})
	if err != nil {
		return nil, fmt.Errorf("prepare the redaction of secrets: %w", err)
	}
	return secrets, nil
}

// reveal puts the values of secrets back into what a resumed session is built from: paths, commands, the model.
func reveal(start *journal.SessionStart, secrets *redact.Redactor) error {
	fields := []*string{&start.Workspace, &start.Model.Spec}
	for i := range start.Verify {
		fields = append(fields, &start.Verify[i])
	}
	for _, field := range fields {
		real, err := secrets.Restore(*field)
		if err != nil {
			return fmt.Errorf("%w (was the run's vault removed?)", err)
		}
		*field = real
	}
	return nil
}
