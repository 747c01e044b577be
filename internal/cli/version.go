package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is set when a release is built: -ldflags "-X belay/internal/cli.release=1.2.3".
var release string

// version is the release, else what the build knows about its sources.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	if revision == "" {
		return "devel"
	}
	return "devel-" + revision[:min(12, len(revision))] + dirty
}

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Say which belay this is",
		Example: "  belay version\n  belay version --json",
		Args:    exactly(0, ""),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.json(struct {
					Version string `json:"version"`
					Go      string `json:"go"`
					OS      string `json:"os"`
					Arch    string `json:"arch"`
				}{version(), runtime.Version(), runtime.GOOS, runtime.GOARCH})
			}
			_, err := fmt.Fprintf(a.out, "belay %s (%s, %s/%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
