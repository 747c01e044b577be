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
	best, distance := "", 1+len(name)/3
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		d := edits(name, f.Name)
		if strings.HasPrefix(f.Name, name) {
			d = 1
		}
		if !f.Hidden && d <= distance && (best == "" || d < distance) {
			best, distance = f.Name, d
		}
	})
	return best
}

// edits is the Levenshtein distance in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
