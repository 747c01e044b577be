package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// What all packages may allocate before main, in bytes and in pieces. It is paid by every start of belay, and
// what costs time there is nearly always seen here: tables, expressions and templates that are made before
// anyone has asked for them.
const (
	maxInitBytes  = 450_000
	maxInitAllocs = 3_000
	maxOwnBytes   = 60_000 // of any one package of this module
)

var initLine = regexp.MustCompile(`^init (\S+) @\S+ ms, (\S+) ms clock, (\d+) bytes, (\d+) allocs$`)

// TestPackageInit starts this program without a test to run, and adds up what the runtime says of each package.
// What only tests link is left out.
func TestPackageInit(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatal(err, out.String())
	}
	var bytes, allocs int
	var clock float64
	own := 0
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		m := initLine.FindStringSubmatch(lines.Text())
		if m == nil || strings.HasPrefix(m[1], "testing") || strings.Contains(m[1], "go-internal") {
			continue
		}
		ms, _ := strconv.ParseFloat(m[2], 64)
		size, _ := strconv.Atoi(m[3])
		count, _ := strconv.Atoi(m[4])
		bytes, allocs, clock = bytes+size, allocs+count, clock+ms
		if strings.HasPrefix(m[1], "belay") {
			own++
			if size > maxOwnBytes {
				t.Errorf("%s allocates %d bytes before main, above %d: make it when it is needed", m[1], size, maxOwnBytes)
			}
		}
	}
	if own == 0 {
		t.Fatal("the runtime told nothing about belay's packages")
	}
	t.Logf("%d bytes in %d pieces, %.1f ms", bytes, allocs, clock)
	if bytes > maxInitBytes || allocs > maxInitAllocs {
		t.Errorf("%d bytes in %d pieces are allocated before main; the limits are %d and %d", bytes, allocs, maxInitBytes, maxInitAllocs)
	}
}
