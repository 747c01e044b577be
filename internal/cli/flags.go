package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError makes every mistake with a flag a usage error that says what to do.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
		if near := nearestFlag(cmd, unknown.GetSpecifiedName()); near != "" {
			return usagef("`%s` has no flag --%s. Did you mean --%s?", cmd.CommandPath(), unknown.GetSpecifiedName(), near)
		}
	}
	return usagef("%w. `%s --help` lists the flags", err, cmd.CommandPath())
}

// nearestFlag is the flag of cmd that is most like name, "" where none is.
func nearestFlag(cmd *cobra.Command, name string) string {
	best, distance, length := "", 1+len(name)/3, 0
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		d := edits(name, f.Name)
		if strings.HasPrefix(f.Name, name) {
			d = 1
		}
		off := max(len(f.Name)-len(name), len(name)-len(f.Name))
		if !f.Hidden && (d < distance || d == distance && (best == "" || off < length)) {
			best, distance, length = f.Name, d, off
		}
	})
	return best
}

// edits counts the bytes to insert, delete, replace or swap with their neighbour (optimal string alignment).
func edits(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
