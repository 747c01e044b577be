package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// exitCodes are what scripts are written against.
const exitCodes = `0 done and proved · 1 fault of belay's own · 2 usage or configuration · 3 finished, unverified ·
4 verification failed or blocker reported · 5 bound reached · 6 waiting for a person · 7 environment failure ·
130 interrupted`

// exitStatus is the annotation of commands whose exit codes are not the plain ones.
const exitStatus = "exit status"

// ofRun marks a command that ends with the exit code of a run.
var ofRun = map[string]string{exitStatus: exitCodes}

const plainStatus = "0 all is well · 1 something is wrong, and is said · 2 usage or configuration"

const environment = `BELAY_HOME           where runs are kept; default ~/.local/state/belay
BELAY_MODEL …        settings, see ` + "`belay config show`" + `
ANTHROPIC_API_KEY,   keys; a file ~/.config/belay/keys/PROVIDER of mode 0600 does as well
OPENAI_API_KEY
ANTHROPIC_BASE_URL,  where a provider is asked, if not at home
OPENAI_BASE_URL
NO_COLOR             no colours`

// pageWidth is what the texts of this package are wrapped at, in columns.
const pageWidth = 118

// help prints a command's page in the order of a manual.
func (a *app) help(cmd *cobra.Command, _ []string) {
	screen := a.screen()
	var b strings.Builder
	section := func(title, text string) {
		if text = strings.TrimRight(text, "\n"); text == "" {
			return
		}
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		b.WriteString(screen.Bold(title) + "\n")
		for line := range strings.Lines(text) {
			b.WriteString(strings.TrimRight("  "+line, " \n") + "\n")
		}
	}
	section("NAME", cmd.CommandPath()+": "+cmd.Short)
	var uses []string
	if cmd.Runnable() && (!cmd.HasSubCommands() || strings.Contains(cmd.Use, " ")) {
		uses = append(uses, cmd.UseLine())
	}
	var commands []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			commands = append(commands, fmt.Sprintf("%-11s %s", sub.Name(), sub.Short))
		}
	}
	if len(commands) > 0 {
		uses = append(uses, cmd.CommandPath()+" COMMAND [flags]")
	}
	section("SYNOPSIS", strings.Join(uses, "\n"))
	section("DESCRIPTION", cmd.Long)
	section("COMMANDS", strings.Join(commands, "\n"))
	section("OPTIONS", dedent(cmd.LocalFlags().FlagUsagesWrapped(pageWidth)))
	section("EXAMPLES", dedent(cmd.Example))
	status := cmd.Annotations[exitStatus]
	if status == "" {
		status = plainStatus
	}
	section("EXIT STATUS", status)
	if !cmd.HasParent() {
		section("ENVIRONMENT", environment)
		section("SEE ALSO", "belay COMMAND --help explains a command.")
	}
	_, _ = io.WriteString(a.out, b.String()) // nobody to tell
}

// dedent takes away the two spaces that cobra puts before flags and examples.
func dedent(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}
