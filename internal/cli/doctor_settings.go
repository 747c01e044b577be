package cli

import (
	"os"
	"strings"

	"belay/internal/config"
	"belay/internal/keys"
	"belay/model"
	"belay/model/rehearsal"
)

// settingFindings is what the settings come to in the current folder.
func settingFindings(s config.Settings, notices []config.Notice) (findings []finding) {
	for _, n := range notices {
		if n.Key != "" || !strings.Contains(n.Text, "not trusted") { // that is the project's finding
			findings = append(findings, finding{Name: "settings", Status: weak, Detail: n.String()})
		}
	}
	if len(notices) == 0 {
		var set []string
		for _, row := range s.Rows() {
			if row.Value != "" && row.Origin.Layer > config.Default {
				set = append(set, row.Name+" ("+row.Origin.Layer.String()+")")
			}
		}
		detail := "belay's defaults"
		if len(set) > 0 {
			detail = strings.Join(set, ", ") + "; else belay's defaults"
		}
		findings = append(findings, finding{Name: "settings", Status: healthy, Detail: detail, Advice: "to see all: " + self() + " config show"})
	}
	return findings
}

// projectFinding says whether the settings of the current folder's project decide.
func (a *app) projectFinding() finding {
	f := finding{Name: "project", Status: healthy}
	p, err := config.ReadProject(".")
	if err != nil {
		return finding{Name: "project", Status: broken, Detail: err.Error()}
	}
	if len(p.Files) == 0 && p.Odd == "" {
		f.Detail = "it has no settings of its own"
		return f
	}
	dir, err := a.userDir()
	if err != nil {
		return finding{Name: "project", Status: weak, Detail: err.Error()}
	}
	verdict := config.Trust{Dir: dir}.Check(p)
	f.Detail = p.Workspace + " is " + verdict.Why
	if !verdict.Trusted {
		f.Status, f.Detail = weak, p.Workspace+" is not trusted: "+verdict.Why+"; its settings can tighten, never widen"
		f.Advice = "read the files in " + config.Folder + ", then say: " + self() + " trust"
	}
	return f
}

// modelFinding says which model a run without --model would take, and whether it can be used. It asks nobody.
func modelFinding(s config.Settings, local []model.Spec) finding {
	f := finding{Name: "model", Status: healthy}
	if s.Model == "" {
		f.Status, f.Detail, f.Advice = weak, "none is set", "name one with --model, BELAY_MODEL or a settings file: "+model.SpecForms
		if len(local) > 0 {
			f.Detail, f.Advice = "none is set; a server on this machine has "+local[0].String(), "to use it: --model "+local[0].String()
		}
		return f
	}
	f.Detail = s.Model + ", from " + strings.TrimSpace(s.From["model"].Layer.String()+" "+s.From["model"].Place)
	spec, err := model.ParseSpec(s.Model)
	switch {
	case err != nil:
	case spec.Provider == "rehearsal":
		_, err = rehearsal.Load(spec.Name)
	case spec.BaseURL == "" && os.Getenv(keys.URLEnvName(spec.Provider)) == "": // a server of one's own may want no key
		_, err = keys.Find(spec.Provider, keys.Config{Files: s.KeyFiles})
	}
	if err != nil {
		f.Status, f.Advice = broken, err.Error()
	}
	return f
}
