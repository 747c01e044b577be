package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"belay/journal"
)

// driver runs both loops in processes of their own, in turns, and prints how they compare.
type driver struct {
	rounds  int
	line    string
	profile string
	binary  string
	dir     string
}

func (d *driver) close() {
	if d.dir != "" {
		os.RemoveAll(d.dir)
	}
}

func (d *driver) run(lengths []int) error {
	var err error
	if d.dir, err = os.MkdirTemp("", "belay-bench-"); err != nil {
		return err
	}
	fmt.Printf("belay's time per turn over the floor's, in ms; every turn runs `%s`\n\n", d.line)
	fmt.Println("| turns | floor | belay | over | first tenth | last tenth | fsync | sandbox | policy | projection | wire | rest |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|")
	var starts []float64
	var first int
	for _, turns := range lengths {
		c, err := d.compare(turns, turns == slices.Max(lengths))
		if err != nil {
			return err
		}
		fmt.Println(c)
		starts, first = append(starts, c.start...), c.firstSize
	}
	var version []float64
	if d.binary == "" {
		d.binary = filepath.Join(d.dir, "belay")
		if out, err := exec.Command("go", "build", "-o", d.binary, "belay/cmd/belay").CombinedOutput(); err != nil {
			return fmt.Errorf("build belay: %w: %s", err, out)
		}
	}
	var bare []float64
	for range 30 {
		for times, argv := range map[*[]float64][]string{&version: {d.binary, "version"}, &bare: {"/bin/true"}} {
			began := time.Now()
			if err := exec.Command(argv[0], argv[1:]...).Run(); err != nil {
				return err
			}
			*times = append(*times, time.Since(began).Seconds()*1000)
		}
	}
	peak, shared, err := d.memory(200)
	if err != nil {
		return err
	}
	fmt.Printf("\nstart to first request %.1f ms; first request %.1f KB; `belay version` %.1f ms (`true`: %.1f ms); peak memory of the process tree %.1f MB (shared pages counted once: %.1f MB)\n",
		median(starts), float64(first)/1000, median(version), median(bare), peak, shared)
	return nil
}

// start begins one of the programs in a process of its own.
func (d *driver) start(role string, j job) (*exec.Cmd, *bytes.Buffer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	given, err := json.Marshal(j)
	if err != nil {
		return nil, nil, err
	}
	var out bytes.Buffer
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVar+"="+role, roleVar+"_JOB="+string(given))
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	return cmd, &out, cmd.Start()
}

func (d *driver) fresh() (string, error) {
	dir, err := os.MkdirTemp(d.dir, "run-")
	if err != nil {
		return "", err
	}
	return dir, os.Mkdir(filepath.Join(dir, "work"), 0o755)
}

// comparison is what runs of one length showed, in milliseconds a turn.
type comparison struct {
	turns                 int
	floor, belay          []float64 // one value a round
	firstTenth, lastTenth []float64 // of belay, over the floor
	phases                map[string][]float64
	price                 price
	start                 []float64 // until the first request, of belay
	firstSize             int
}

func (d *driver) compare(turns int, longest bool) (*comparison, error) {
	c := &comparison{turns: turns, phases: map[string][]float64{}}
	s, err := newServer(turns, d.line)
	if err != nil {
		return nil, err
	}
	defer s.close()
	for round := range d.rounds {
		dir, err := d.fresh()
		if err != nil {
			return nil, err
		}
		j := job{URL: s.url, Dir: dir, Turns: turns, Line: d.line}
		if longest && round == 0 {
			j.Profile = d.profile
		}
		began := time.Now()
		cmd, _, err := d.start("agent", j)
		if err == nil {
			err = cmd.Wait()
		}
		if err != nil {
			return nil, fmt.Errorf("belay: %w", err)
		}
		belays := s.take()
		moments, err := readMoments(dir)
		if err != nil {
			return nil, err
		}
		c.start, c.firstSize = append(c.start, ms(belays[0].arrived.Sub(began))), belays[0].size
		c.split(belays, moments)
		j.Sizes = nil
		for _, x := range belays {
			j.Sizes = append(j.Sizes, x.size)
		}
		cmd, _, err = d.start("floor", j)
		if err == nil {
			err = cmd.Wait()
		}
		if err != nil {
			return nil, fmt.Errorf("floor: %w", err)
		}
		floors := s.take()
		own, bare := gaps(belays), gaps(floors)
		c.belay, c.floor = append(c.belay, typical(own)), append(c.floor, typical(bare))
		tenth := max(1, turns/10)
		c.firstTenth = append(c.firstTenth, typical(own[:tenth])-typical(bare[:tenth]))
		c.lastTenth = append(c.lastTenth, typical(own[len(own)-tenth:])-typical(bare[len(bare)-tenth:]))
		if round > 0 {
			continue
		}
		cmd, out, err := d.start("parts", j)
		if err == nil {
			err = cmd.Wait()
		}
		if err != nil {
			return nil, fmt.Errorf("parts: %w", err)
		}
		if err := json.Unmarshal(out.Bytes(), &c.price); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func readMoments(dir string) ([]moment, error) {
	b, err := os.ReadFile(filepath.Join(dir, momentsName))
	if err != nil {
		return nil, err
	}
	var all []moment
	return all, json.Unmarshal(b, &all)
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

// gaps are the times between an answer and the next request: what a loop does with its turn.
func gaps(all []exchange) []float64 {
	var out []float64
	for i := 1; i < len(all); i++ {
		out = append(out, ms(all[i].arrived.Sub(all[i-1].done)))
	}
	return out
}

// split says which part of belay's turn took how long, from the moments of its events and the server's.
func (c *comparison) split(served []exchange, moments []moment) {
	took := map[string][]float64{}
	turn, last := 0, int64(0)
	for _, m := range moments {
		note := func(phase string, from int64) { took[phase] = append(took[phase], float64(m.At-from)/1e6) }
		switch m.Type {
		case journal.TypeModelCall:
			if turn > 0 {
				note("projection", last)
			}
			if turn < len(served) {
				took["send"] = append(took["send"], float64(served[turn].arrived.UnixNano()-m.At)/1e6)
			}
			turn++
		case journal.TypeModelReply:
			if turn >= 1 && turn <= len(served) {
				note("receive", served[turn-1].done.UnixNano())
			}
		case journal.TypeToolRequest:
			note("policy", last)
		case journal.TypeToolResult:
			note("run", last)
		}
		last = m.At
	}
	for phase, times := range took {
		c.phases[phase] = append(c.phases[phase], typical(times))
	}
}

// syncs is how many durable appends belay makes in a turn of one call: the reply with its request, the result.
const syncs = 2

func (c *comparison) String() string {
	floor, belay := median(c.floor), median(c.belay)
	phase := func(name string) float64 { return median(c.phases[name]) }
	parts := []float64{syncs * c.price.Sync, phase("run") - c.price.Sync - c.price.Bare, phase("policy") - c.price.Sync,
		phase("projection"), phase("send") + phase("receive") - (floor - c.price.Bare)}
	rest := belay - floor
	line := fmt.Sprintf("| %d | %.2f | %.2f | **%.2f** | %.2f | %.2f |", c.turns, floor, belay, rest, median(c.firstTenth), median(c.lastTenth))
	for _, part := range parts {
		line += fmt.Sprintf(" %.2f |", part)
		rest -= part
	}
	return line + fmt.Sprintf(" %.2f |", rest)
}
