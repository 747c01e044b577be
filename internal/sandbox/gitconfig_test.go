package sandbox

import "testing"

func FuzzRunsPrograms(f *testing.F) {
	for config, dangerous := range map[string]bool{
		"[core]\n\tbare = false\n": false, "[core]fsmonitor=x": true, "[CORE]\r\n FSMonitor = x": true, "[core \"a]b\"] x = y": true,
		"[include]\npath = x": true, "[core]\nbare = \\\n[alias]\n": true, "[remote \"o\"]\nurl = ext::sh -c x": true, "[core": true,
		"# [core]\n; x\n": false, "[a.b]\nc = d": true, "[branch \"main\"]\n\tremote = origin # c\n": false, "\ufeff[core]\nfsmonitor = x": true,
		"0123456789\n": false, "x = y\n[core]\n": true, "[core][alias] x = !y": true, "[core]\nfsmonitor": true,
	} {
		if got := len(runsPrograms(config)) > 0; got != dangerous {
			f.Errorf("%q: %v", config, got)
		}
		f.Add(config)
	}
	f.Fuzz(func(t *testing.T, config string) {
		if before, after := runsPrograms(config+"\n"), runsPrograms(config+"\n[alias]\nx = !y\n"); len(after) < len(before) {
			t.Errorf("%q: more text made fewer findings", config)
		}
	})
}
