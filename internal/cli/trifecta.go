package cli

import (
	"os"

	"belay/harness"
	"belay/internal/config"
	"belay/internal/permissions"
)

// trifectaFinding reviews which tools read private data, which read what strangers may have written, and which ways out there
// are. Where all three come together, data could leave on a stranger's word.
func (a *app) trifectaFinding(s config.Settings) finding {
	f := finding{Name: "trifecta", Status: healthy}
	dir, err := os.Getwd()
	if err != nil {
		return finding{Name: "trifecta", Status: weak, Detail: err.Error()}
	}
	layers, err := policyLayers(dir)
	if err != nil {
		return finding{Name: "policy", Status: broken, Detail: err.Error(), Advice: "mend it where it says"}
	}
	rules, _ := permissions.Merge(layers...)
	t, err := harness.Review(harness.Config{Only: s.Tools, Mode: s.Mode}, &rules)
	if err != nil {
		return finding{Name: "trifecta", Status: weak, Detail: err.Error()}
	}
	if f.Detail = t.Note; t.Complete {
		f.Status, f.Advice = weak, "take one of the three away: fewer hosts under network, or --tools without what it does not need"
	}
	f.Lacks = t.Sends
	return f
}
