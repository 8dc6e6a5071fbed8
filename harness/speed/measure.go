// Package speed measures how long one core takes for Coppice's work, and how long other programs take for the same work
// in turns with it.
//
// A Case is something that is run again and again, such as the training of a forest, and
// gives a figure for each of its rows: seconds of a step, of a leaf update.
package speed

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// Case is something that is run again and again.
type Case struct {
	Name string
	Of   []string // what each of its figures is: "a step"
	// PeerOf is how many of these, the first ones, peers have; 0: all.
	PeerOf int
	// Run does it once.
	Run func(ctx context.Context) (Figures, error)
	// Jobs are what peers do beside it, by peer.
	Jobs map[string]Job
	// Cold is set where the run that does not count is Coppice's alone: a peer's run is long.
	Cold bool
	// Agreement, where not 0, is how far a peer's loss may be from Coppice's, as a share of
	// it: further off it does other work.
	Agreement float64
	// Unshown is set where the loss is not a K-L divergence, and only shows that the work is the
	// same.
	Unshown bool
}

// Figures are what a run of a case found: seconds in the order of Case.Of, and the K-L
// divergence of the model on its training rows, 0 where there is none. See Case.Unshown.
type Figures struct {
	Seconds []float64 `json:"seconds"`
	Loss    float64   `json:"loss"`
	// Start is the K-L divergence before the first of Steps, which are after each tree of a boosting.
	Start float64 `json:"start,omitempty"`
	Steps []Step  `json:"steps,omitempty"`
}

// Job is what a peer is asked to do.
type Job map[string]any

// Options says how cases are measured.
type Options struct {
	Runs int // of each case, after one that does not count
	// Limit bounds the time of all runs: where the next would pass it, there are fewer.
	Limit time.Duration
	// Note, where set, is told what runs now.
	Note func(text string)
}

// Measure runs all cases in turns, and peers in turns with them.
func Measure(ctx context.Context, kind string, cases []Case, peers []*Peer, o Options) (*Report, error) {
	r := &Report{Kind: kind, Machine: ThisMachine(), Versions: Versions()}
	for _, p := range peers {
		for name, version := range p.Versions {
			r.Versions[name] = version
		}
	}
	t := &turns{cases: cases, peers: peers, options: o, began: time.Now()}
	if err := t.all(ctx); err != nil {
		return nil, err
	}
	r.Runs = t.runs
	for i := range cases {
		r.Rows = append(r.Rows, t.results(i)...)
	}
	return r, nil
}

// turns are the runs of all cases and peers.
type turns struct {
	cases   []Case
	peers   []*Peer
	options Options
	began   time.Time

	runs   int
	ours   [][]Figures   // by case and run
	theirs [][][]Figures // by case, peer and run; nil where the peer has no job
}

func (t *turns) all(ctx context.Context) error {
	t.ours, t.theirs = make([][]Figures, len(t.cases)), make([][][]Figures, len(t.cases))
	for i := range t.cases {
		t.theirs[i] = make([][]Figures, len(t.peers))
	}
	longest := time.Duration(0)
	for number := 0; number <= t.options.Runs; number++ {
		if number > 1 && time.Since(t.began)+longest > t.options.Limit {
			break
		}
		began := time.Now()
		if err := t.round(ctx, number); err != nil {
			return err
		}
		longest = max(longest, time.Since(began))
		if number == 0 {
			longest = 0 // it begins what the later ones have
		}
		t.runs = number
	}
	return nil
}

// round runs every case once, and after it each peer's job for it. Round 0 does not count.
func (t *turns) round(ctx context.Context, number int) error {
	for i := range t.cases {
		c := &t.cases[i]
		t.note("Coppice", c, number)
		f, err := c.Run(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		if number > 0 {
			t.ours[i] = append(t.ours[i], f)
		}
		for j, p := range t.peers {
			job := c.Jobs[p.Name]
			if job == nil || number == 0 && c.Cold {
				continue
			}
			t.note(p.Name, c, number)
			g, err := p.Do(ctx, job, c.peerFigures())
			if err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			if err := c.agrees(p.Name, f.Loss, g.Loss); err != nil {
				return err
			}
			if number > 0 {
				t.theirs[i][j] = append(t.theirs[i][j], g)
			}
		}
	}
	return nil
}

func (t *turns) note(who string, c *Case, number int) {
	if t.options.Note == nil {
		return
	}
	run := fmt.Sprintf("run %d of %d", number, t.options.Runs)
	if number == 0 {
		run = "warm-up run, not counted"
	}
	t.options.Note(fmt.Sprintf("%s: %s, %s", c.Name, who, run))
}

// agrees refuses a peer whose loss shows that it does other work.
func (c *Case) agrees(peer string, ours, theirs float64) error {
	if c.Agreement > 0 && !(math.Abs(theirs-ours) <= c.Agreement*ours) {
		return fmt.Errorf("%s: %s ends with a %s of %.5f, but Coppice with %.5f: the two do not compute the same thing",
			c.Name, peer, c.lossName(), theirs, ours)
	}
	return nil
}

// peerFigures is how many figures peers have.
func (c *Case) peerFigures() int {
	if c.PeerOf > 0 {
		return c.PeerOf
	}
	return len(c.Of)
}

// lossName says what the loss is.
func (c *Case) lossName() string {
	if c.Unshown {
		return "mean size of the gradient"
	}
	return "K-L"
}

// shown returns the loss where reports have it.
func (c *Case) shown(f Figures) float64 {
	if c.Unshown {
		return 0
	}
	return f.Loss
}

// results makes the rows of a case.
func (t *turns) results(i int) (rows []Result) {
	c := &t.cases[i]
	for k, of := range c.Of {
		seconds := column(t.ours[i], k)
		row := Result{Name: c.Name, Of: of, Seconds: SpreadOf(seconds), Loss: c.shown(t.ours[i][t.runs-1])}
		last := t.ours[i][t.runs-1]
		if k == 0 {
			row.Start, row.Steps = last.Start, last.Steps
		}
		for j, p := range t.peers {
			if t.theirs[i][j] == nil || k >= c.peerFigures() {
				continue
			}
			his := column(t.theirs[i][j], k)
			theirs := t.theirs[i][j][t.runs-1]
			peer := PeerResult{
				Peer: p.Name, Seconds: SpreadOf(his), Ratio: SpreadOf(quotients(his, seconds)), Loss: c.shown(theirs),
			}
			if k == 0 && len(theirs.Steps) > 0 && len(last.Steps) > 0 {
				peer.Steps, peer.Equal = theirs.Steps, compare(last.Steps, theirs.Steps, last.Start)
			}
			row.Peers = append(row.Peers, peer)
		}
		rows = append(rows, row)
	}
	return rows
}

func column(runs []Figures, k int) (all []float64) {
	for _, f := range runs {
		all = append(all, f.Seconds[k])
	}
	return all
}

func quotients(a, b []float64) []float64 {
	q := make([]float64, len(a))
	for i := range a {
		q[i] = a[i] / b[i]
	}
	return q
}

// Step is the state of a training after some of its trees.
type Step struct {
	Seconds float64 `json:"seconds"` // since training began
	Loss    float64 `json:"loss"`    // K-L divergence of the training samples
}

// Equal compares two trainings.
type Equal struct {
	// Loss is the K-L divergence that the peer has reached after the seconds of Coppice's training.
	Loss float64 `json:"loss"`
	// Ratio is the peer's time by Coppice's to the same K-L divergence: the greater one of their last.
	Ratio float64 `json:"ratio"`
}

// compare compares the trees of a peer with Coppice's. start is the K-L divergence without trees. It returns nil if one
// of them has not improved on that.
func compare(ours, theirs []Step, start float64) *Equal {
	e := &Equal{Loss: start}
	for _, s := range theirs {
		if s.Seconds <= ours[len(ours)-1].Seconds {
			e.Loss = s.Loss
		}
	}
	goal := max(ours[len(ours)-1].Loss, theirs[len(theirs)-1].Loss)
	if goal >= start {
		return nil
	}
	e.Ratio = reaches(theirs, start, goal) / reaches(ours, start, goal)
	return e
}

// reaches returns the seconds until a training has a K-L divergence, between two trees in proportion. The seconds
// are counted from the beginning of the training, and are above 0.
func reaches(steps []Step, start, goal float64) float64 {
	before := Step{Loss: start}
	for _, s := range steps {
		if s.Loss <= goal {
			if s.Loss < before.Loss {
				s.Seconds = before.Seconds + (s.Seconds-before.Seconds)*(before.Loss-goal)/(before.Loss-s.Loss)
			}
			return s.Seconds
		}
		before = s
	}
	return before.Seconds
}

// Report is what a measurement found.
type Report struct {
	Kind     string            `json:"kind"` // ldlf, network, forest, boost, cluster
	Machine  Machine           `json:"machine"`
	Versions map[string]string `json:"versions"`
	Runs     int               `json:"runs"` // of each row; fewer than were asked for where time was up
	// Data says of each dataset what it was: a file, or generated.
	Data    []Source  `json:"data,omitempty"`
	Rows    []Result  `json:"rows"`
	Skipped []Skipped `json:"skipped,omitempty"`
}

// Source says where a dataset came from.
type Source struct {
	Name      string `json:"name"`
	Generated bool   `json:"generated"` // of the shape of the file, which is not at hand
	File      string `json:"file,omitempty"`
}

// Skipped is a peer that did not run, and why.
type Skipped struct {
	Peer   string `json:"peer"`
	Reason string `json:"reason"`
}

// Result is what was measured of a row. Times are in seconds.
type Result struct {
	Name    string `json:"name"`
	Of      string `json:"of"` // what takes the seconds: "a step"
	Seconds Spread `json:"seconds"`
	// Loss is the K-L divergence of the model on its training rows, where there is one.
	Loss float64 `json:"loss,omitempty"`
	// Start is the K-L divergence before the first of Steps, which are of the last run.
	Start float64      `json:"start,omitempty"`
	Steps []Step       `json:"steps,omitempty"`
	Peers []PeerResult `json:"peers,omitempty"`
}

// PeerResult is a peer's figure for a row.
type PeerResult struct {
	Peer    string `json:"peer"`
	Seconds Spread `json:"seconds"`
	// Ratio is that of each run's two figures, the peer's by Coppice's.
	Ratio Spread  `json:"ratio"`
	Loss  float64 `json:"loss,omitempty"`
	Steps []Step  `json:"steps,omitempty"`
	Equal *Equal  `json:"equal,omitempty"` // with steps
}

// Spread is the median, least and greatest of some figures.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// SpreadOf summarizes one figure or more.
func SpreadOf(figures []float64) Spread {
	f := slices.Sorted(slices.Values(figures))
	n := len(f)
	return Spread{Median: (f[(n-1)/2] + f[n/2]) / 2, Min: f[0], Max: f[n-1]}
}
