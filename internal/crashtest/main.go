// Command crashtest kills belay, again and again, at named moments and at random ones, and checks after each death that nothing acknowledged is lost and nothing irreversible happens twice.
package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"belay/internal/failpoint"
)

//go:embed script.yaml
var loopScript []byte

//go:embed binary.yaml
var binaryScript []byte

func main() {
	if len(os.Args) == 7 && os.Args[1] == "victim" {
		if err := victim(os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6]); err != nil {
			fmt.Fprintln(os.Stderr, "victim:", err)
			os.Exit(1)
		}
		return
	}
	n := flag.Int("n", 200, "kills")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random choices")
	record := flag.String("record", "", "`file` of cumulative figures to add to")
	page := flag.String("doc", "", "Markdown `file` to write the figures into")
	flag.Parse()
	if err := run(*n, *seed, *record, *page); err != nil {
		fmt.Fprintf(os.Stderr, "crashtest: %v\n(seed %d)\n", err, *seed)
		os.Exit(1)
	}
}

func run(n int, seed uint64, record, page string) error {
	if runtime.GOOS == "windows" {
		return errors.New("there is no SIGKILL to send on Windows")
	}
	room, err := os.MkdirTemp("", "crashtest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(room)
	t := &test{room: room, rng: rand.New(rand.NewPCG(seed, 0)), figures: figures{At: map[string]int{}}}
	for path, text := range map[string][]byte{"script.yaml": loopScript, "binary.yaml": binaryScript} {
		if err := os.WriteFile(filepath.Join(room, path), text, 0o600); err != nil {
			return err
		}
	}
	for _, pkg := range []string{"crashtest", "belay"} {
		path := map[string]string{"crashtest": "belay/internal/crashtest", "belay": "belay/cmd/belay"}[pkg]
		build := exec.Command("go", "build", "-tags", "failpoint", "-o", filepath.Join(room, pkg), path)
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build %s: %w", path, err)
		}
	}
	for i := 0; t.figures.Kills < n; i++ {
		s := t.subject(i)
		if err := t.life(s); err != nil {
			return fmt.Errorf("run %d (%s): %w", i, s.kind, err)
		}
	}
	fmt.Print(t.figures)
	return t.figures.keep(record, page)
}

// subject is one run that is killed and resumed until it ends.
type subject struct {
	kind  string
	home  string
	runID string // "" until the real binary has made one
	acked map[int64]string
	ledgr string
	start func(resume bool, say string) *exec.Cmd
	most  time.Duration // a random death comes before that
}

// test drives subjects.
type test struct {
	room    string
	rng     *rand.Rand
	figures figures
}

// subject makes the i-th run: one of five is the real binary with its sandbox, the others are the loop with tools of
// every class.
func (t *test) subject(i int) *subject {
	home := filepath.Join(t.room, fmt.Sprint("home", i))
	s := &subject{kind: "loop", home: home, acked: map[int64]string{}, runID: "r_victim", ledgr: filepath.Join(home, "ledger"), most: 60 * time.Millisecond}
	os.MkdirAll(home, 0o700)
	s.start = func(_ bool, say string) *exec.Cmd {
		return exec.Command(filepath.Join(t.room, "crashtest"), "victim", s.home, s.runID, s.ledgr, filepath.Join(t.room, "script.yaml"), say)
	}
	if i%5 == 4 {
		ws := filepath.Join(home, "ws")
		os.Mkdir(ws, 0o700)
		os.WriteFile(filepath.Join(ws, "notes.txt"), []byte("notes\n"), 0o600)
		s.kind, s.runID, s.ledgr, s.most = "binary", "", filepath.Join(ws, "ledger"), 700*time.Millisecond
		s.start = func(resume bool, say string) *exec.Cmd {
			args := []string{"run", "do it", "--model", "rehearsal:" + filepath.Join(t.room, "binary.yaml"), "--workspace", ws}
			if resume {
				args = []string{"resume", s.runID}
				if say != "" {
					args = append(args, say)
				}
			}
			cmd := exec.Command(filepath.Join(t.room, "belay"), append(args, "--stream-json")...)
			cmd.Env = append(os.Environ(), "BELAY_HOME="+filepath.Join(home, "state"))
			return cmd
		}
		s.home = filepath.Join(home, "state")
	}
	return s
}

// mostDeaths bounds how often one run dies: then it may end.
const mostDeaths = 8

// life kills the run and resumes it until it ends, and looks at what is left after each death.
func (t *test) life(s *subject) error {
	say := ""
	for deaths := 0; ; {
		cmd := s.start(s.runID != "" && s.exists(), say)
		if cmd.Env == nil {
			cmd.Env = os.Environ()
		}
		at := "never"
		var after time.Duration
		if deaths < mostDeaths {
			if t.rng.IntN(3) > 0 {
				at = failpoint.Names[t.rng.IntN(len(failpoint.Names))]
				cmd.Env = append(cmd.Env, fmt.Sprintf("BELAY_FAILPOINT=%s:%d", at, 1+t.rng.IntN(6)))
			} else {
				at, after = "a random time", time.Duration(t.rng.Int64N(int64(s.most)))
			}
		}
		end, err := s.watch(cmd, after)
		if err != nil {
			return fmt.Errorf("to be killed at %s: %w", at, err)
		}
		if err := s.check(); err != nil {
			return fmt.Errorf("after %d deaths, the last at %s: %w", deaths, at, err)
		}
		switch {
		case end.killed:
			deaths++
			t.figures.died(s.kind, at)
		case end.exit == "6": // an effect of unknown outcome: a person looks, and speaks
			say = "I looked. Go on."
			t.figures.Asked++
			continue
		case end.exit == "2" && strings.Contains(end.text, "is finished"): // it died after its last word
			t.figures.Runs++
			return s.checkEnd()
		case end.exit != "3":
			return fmt.Errorf("it ended with exit %s: %s", end.exit, end.text)
		case !strings.Contains(end.text, "All is done."):
			return fmt.Errorf("it did not end as an uninterrupted run does: %s", end.text)
		default:
			t.figures.Runs++
			return s.checkEnd()
		}
		say = ""
	}
}
