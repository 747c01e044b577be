// Command belay runs AI agents that you can trust: judged, contained, recorded, reversible, and finished only by proof.
package main

import (
	"context"
	"os"

	"belay"
	"belay/internal/cli"
)

func main() {
	belay.Init() // first: a sandbox's helper is this program again, and never comes back from here
	os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
