// Command rewindtest changes trees at random, takes them back to random checkpoints, kills some of the rewinds on their way, and compares every file with an independent copy.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"belay/checkpoint"
	"belay/harness"
	"belay/journal"
)

func main() {
	if len(os.Args) == 5 && os.Args[1] == "rewind" {
		if err := rewindOnce(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	n := flag.Int("n", 100, "rewinds")
	seed := flag.Uint64("seed", rand.Uint64(), "of the first tree")
	record := flag.String("record", "", "file of the cumulative record")
	page := flag.String("doc", "", "page that shows it")
	flag.Parse()
	if err := run(*n, *seed, *record, *page); err != nil {
		fmt.Fprintln(os.Stderr, "rewindtest:", err)
		os.Exit(1)
	}
}

func run(n int, seed uint64, record, page string) error {
	dir, err := os.MkdirTemp("", "rewindtest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	victim := filepath.Join(dir, "victim")
	if out, err := exec.Command("go", "build", "-tags", "failpoint", "-o", victim, "belay/internal/rewindtest").CombinedOutput(); err != nil {
		return fmt.Errorf("build the victim: %w: %s", err, out)
	}
	f := figures{At: map[string]int{}}
	for ; f.Rewinds < n; seed++ {
		w := &world{rng: rand.New(rand.NewPCG(seed, 7)), home: filepath.Join(dir, fmt.Sprint("home", seed)), ws: filepath.Join(dir, fmt.Sprint("ws", seed)), victim: victim, f: &f}
		if err := w.live(min(25, n-f.Rewinds)); err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		f.Trees++
		for _, d := range []string{w.home, w.ws} {
			os.RemoveAll(d)
		}
	}
	fmt.Printf("%d rewinds in %d trees, %d of them killed, %d paths compared: no difference\n", f.Rewinds, f.Trees, f.killed(), f.Paths)
	return f.keep(record, page)
}

// moments at which a rewind is killed.
var moments = []string{"checkpoint.before-pack", "checkpoint.after-pack", "checkpoint.before-manifest", "checkpoint.after-manifest",
	"rewind.after-intent", "restore.after-path", "rewind.before-event", "rewind.after-event"}

// world is one tree, its run, and what it was at each checkpoint.
type world struct {
	rng              *rand.Rand
	home, ws, victim string
	runID            string
	git              bool
	points           []point
	f                *figures
	names            int
}

// point is a checkpoint and an independent copy of the tree.
type point struct {
	id   string
	copy picture
}

func (w *world) live(rewinds int) error {
	if err := os.MkdirAll(w.ws, 0o755); err != nil {
		return err
	}
	if w.git = w.rng.IntN(2) == 0; w.git {
		if err := w.gitRun("init", "-q"); err != nil {
			return err
		}
	}
	w.runID = journal.NewRunID()
	log, _, err := journal.Create(w.home, w.runID, nil, journal.Entry{Type: journal.TypeSessionStart, Payload: journal.SessionStart{Workspace: w.ws, System: "s", Tools: []byte("[]"), Projection: "1"}},
		journal.Entry{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: "task"}})
	if err != nil {
		return err
	}
	if err := log.Close(); err != nil {
		return err
	}
	for range 40 + w.rng.IntN(60) {
		if err := w.change(); err != nil {
			return err
		}
	}
	for range rewinds {
		for range 1 + w.rng.IntN(2) {
			for range w.rng.IntN(6) {
				if err := w.change(); err != nil {
					return err
				}
			}
			if err := w.point(); err != nil {
				return err
			}
		}
		for range w.rng.IntN(3) { // the user's own edits since
			if err := w.change(); err != nil {
				return err
			}
		}
		if err := w.back(w.points[w.rng.IntN(len(w.points))]); err != nil {
			return err
		}
		w.f.Rewinds++
	}
	return nil
}

// point makes a checkpoint and copies the tree.
func (w *world) point() error {
	s, err := harness.OpenCheckpoints(w.home, w.ws, "")
	if err != nil {
		return err
	}
	m, err := s.Take(context.Background(), checkpoint.Note{Run: w.runID, Seq: 3, Reason: "test"})
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	log, err := journal.Open(filepath.Join(journal.RunsDir(w.home), w.runID), nil)
	if err != nil {
		return err
	}
	_, err = log.Append(journal.Entry{Type: journal.TypeCheckpoint, Payload: journal.Checkpoint{ID: m.ID, Tree: m.Tree, Reason: m.Reason}})
	if err := log.Close(); err != nil {
		return err
	}
	copied, copyErr := take(w.ws)
	w.points = append(w.points, point{m.ID, copied})
	if err == nil {
		err = copyErr
	}
	return err
}

// back goes to a point, perhaps killed on the way and then finished, and compares.
func (w *world) back(p point) error {
	before, err := take(w.ws)
	if err != nil {
		return err
	}
	repo := w.repository()
	moment := ""
	if w.rng.IntN(3) == 0 {
		moment = moments[w.rng.IntN(len(moments))]
		passage := 1
		if moment == "restore.after-path" {
			passage += w.rng.IntN(6)
		}
		cmd := exec.Command(w.victim, "rewind", w.home, w.runID, p.id)
		cmd.Env = append(os.Environ(), fmt.Sprintf("BELAY_FAILPOINT=%s:%d", moment, passage))
		if out, err := cmd.CombinedOutput(); err != nil {
			if cmd.ProcessState.ExitCode() != -1 {
				return fmt.Errorf("%s: %w: %s", moment, err, out)
			}
			w.f.At[moment]++
			begun := w.intent()
			r, err := harness.OpenRewind(context.Background(), w.home, w.runID, "")
			if err == nil {
				err = r.Close()
			}
			if err != nil {
				return fmt.Errorf("recover after %s: %w", moment, err)
			}
			want := before
			if begun || w.ended(r) {
				want = p.copy
			}
			now, err := take(w.ws)
			if err != nil {
				return err
			}
			if d := want.differs(now); d != "" {
				return fmt.Errorf("killed at %s, recovered (begun %v): %s", moment, begun, d)
			}
		}
	}
	if err := rewindOnce(w.home, w.runID, p.id); err != nil {
		return err
	}
	now, err := take(w.ws)
	if err != nil {
		return err
	}
	w.f.Paths += len(p.copy)
	if d := p.copy.differs(now); d != "" {
		return fmt.Errorf("back to %s (%s): %s", p.id, moment, d)
	}
	if d := before.touched(p.copy, now); d != "" {
		return fmt.Errorf("back to %s: untouched, and its time is another: %s", p.id, d)
	}
	if again := w.repository(); again != repo {
		return fmt.Errorf("the repository changed:\n%s\n%s", repo, again)
	}
	return nil
}

func (w *world) intent() bool {
	_, err := os.Stat(filepath.Join(journal.RunsDir(w.home), w.runID, "rewind.json"))
	return err == nil
}

// ended says whether the last event is a rewind: it was killed after it.
func (w *world) ended(r *harness.Rewind) bool {
	last := r.Events[len(r.Events)-1]
	return last.Type == journal.TypeRewind
}

// repository is what git keeps, byte for byte.
func (w *world) repository() string {
	if !w.git {
		return ""
	}
	cmd := exec.Command("sh", "-c", "sha256sum .git/index 2>/dev/null; git for-each-ref; git fsck 2>&1; cat .git/HEAD .git/config; find .git -type f | grep -v objects | sort")
	cmd.Dir = w.ws
	out, _ := cmd.CombinedOutput()
	return string(out)
}

func (w *world) gitRun(args ...string) error {
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	cmd.Dir = w.ws
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil && strings.Contains(string(out), "fatal") && args[0] == "init" {
		return fmt.Errorf("git %v: %w: %s", args, err, out)
	}
	return nil // a commit of nothing is no fault
}

// rewindOnce goes back once, as the command line does.
func rewindOnce(home, runID, id string) error {
	ctx := context.Background()
	r, err := harness.OpenRewind(ctx, home, runID, "")
	if err != nil {
		return err
	}
	defer r.Close()
	to, err := r.Store.Get(id)
	if err != nil {
		return err
	}
	b := harness.Back{To: to, Seq: to.Seq, Files: true, Context: true}
	loss, err := r.Look(ctx, b)
	if err != nil {
		return err
	}
	if len(loss.Conflicts) > 0 {
		return fmt.Errorf("conflicts: %v", loss.Conflicts)
	}
	_, err = r.Do(ctx, b, loss)
	return err
}
