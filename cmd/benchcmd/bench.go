package benchcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/harness/bench/peers"
	"github.com/coppice-ldl/coppice/harness/speed"
	"github.com/coppice-ldl/coppice/internal/garbage"
	"github.com/coppice-ldl/coppice/internal/tempdir"
	"github.com/coppice-ldl/coppice/internal/units"
)

// The kinds of reports.
const (
	kindLDLF    = "ldlf"
	kindNetwork = "network"
	kindForest  = "forest"
	kindBoost   = "boost"
	kindCluster = "cluster"
)

// benchLimit is the time after which no run begins, so that each command ends within five minutes.
const benchLimit = 4 * time.Minute

// benchFlags are the flags of measurements on one core.
type benchFlags struct {
	Runs int      `default:"6" help:"Number of measured runs, after a run to warm up; fewer if all runs would take more than four minutes."`
	Rows []string `sep:"none" placeholder:"TEXT" help:"Measure only lines of the table that have TEXT in their name, such as movie; may be repeated."`
}

// peerFlags are the flags of measurements that can be compared with other programs (peers).
type peerFlags struct {
	Peers   bool   `help:"Also run programs in Python that do the same work (harness/bench/peers), interleaved with Coppice."`
	Python  string `default:"python3" placeholder:"COMMAND" help:"Python interpreter for --peers."`
	DataDir string `placeholder:"DIR" help:"Folder with Yeast_alpha.mat, Movie.mat and SJAFFE.mat. If a file is missing, data of the same shape are generated."`
}

func (p *peerFlags) check() error {
	if p.DataDir == "" {
		return nil
	}
	if info, err := os.Stat(p.DataDir); err != nil {
		return err
	} else if !info.IsDir() {
		return cli.Usagef("--data-dir %s: not a folder", p.DataDir)
	}
	return nil
}

type benchLDLFCmd struct {
	benchFlags
	peerFlags
}

// Help implements kong's longer help.
func (benchLDLFCmd) Help() string {
	return `Trains 5 trees of depth 7 with 64 output units on mini-batches of 64 and 512 samples. After every 100 gradient steps
there is a leaf update of 20 iterations over their mini-batches. Of the peers, torch is PyTorch as a user writes it;
tuned is written for speed with SciPy. Let nothing else run on the machine meanwhile.`
}

// Run implements `coppice bench ldlf`.
func (c *benchLDLFCmd) Run(a *cli.App) error {
	return c.withPeers(a, kindLDLF, &c.peerFlags, []string{"torch_plain.py", "torch_tuned.py"}, ldlfCases)
}

type benchNetworkCmd struct {
	benchFlags
	peerFlags
}

// Help implements kong's longer help.
func (benchNetworkCmd) Help() string {
	return `Measures forward and backward passes on mini-batches of 128 samples: of a network 243-256-64, and of 3x3 convolutions to
16 channels on images of 32x32. It also measures steps and leaf updates of 5 trees of depth 7 on that network. The peer
is PyTorch as a user writes it. Let nothing else run on the machine meanwhile.`
}

// Run implements `coppice bench network`.
func (c *benchNetworkCmd) Run(a *cli.App) error {
	return c.withPeers(a, kindNetwork, &c.peerFlags, []string{"torch_network.py"}, networkCases)
}

type benchForestCmd struct {
	benchFlags
	peerFlags
}

// Help implements kong's longer help.
func (benchForestCmd) Help() string {
	return `Grows 50 trees on each of Yeast_alpha, SJAFFE, Movie and a generated dataset of 2,500 x 243 x 6, and predicts Movie. The
peer is scikit-learn's RandomForestRegressor. Let nothing else run on the machine meanwhile.`
}

// Run implements `coppice bench forest`.
func (c *benchForestCmd) Run(a *cli.App) error {
	return c.withPeers(a, kindForest, &c.peerFlags, []string{"sklearn_forest.py"}, forestCases)
}

type benchBoostCmd struct {
	benchFlags
	peerFlags
}

// Help implements kong's longer help.
func (benchBoostCmd) Help() string {
	return `Boosts 10 trees of depth 6 from 255 bins, on a generated dataset of 100,000 x 100 x 20, and on Movie. Times are processor
time, of bins, of a tree, and of its parts. The peers are XGBoost with a tree for all labels, and LightGBM with a tree
for each label. With them, a table says how long both take to the same K-L.`
}

// Run implements `coppice bench boost`.
func (c *benchBoostCmd) Run(a *cli.App) error {
	return c.withPeers(a, kindBoost, &c.peerFlags, []string{"xgboost_boost.py", "lightgbm_boost.py"}, boostCases)
}

// toMeasure makes a case of a dataset, which is opened when the case is needed.
type toMeasure struct {
	shape speed.Shape // without a name if there is no dataset
	name  string      // name of the rows
	with  func(s *speed.Set, file string) (speed.Case, error)
}

func ldlfCases() (all []toMeasure) {
	for _, shape := range []speed.Shape{speed.YeastAlpha, speed.Movie} {
		for _, batch := range []int{64, 512} {
			all = append(all, toMeasure{shape, fmt.Sprintf("%s, batch %d", shape.Name, batch),
				func(s *speed.Set, file string) (speed.Case, error) {
					return speed.PaperTraining.Case(s, batch, file)
				}})
		}
	}
	return all
}

func networkCases() []toMeasure {
	alone := func(name string, c func() speed.Case) toMeasure {
		return toMeasure{name: name, with: func(*speed.Set, string) (speed.Case, error) { return c(), nil }}
	}
	return []toMeasure{
		alone("network 243-256-64, batch 128", speed.PaperLayers.Case),
		{speed.Dense, "5 trees of depth 7 on it", func(s *speed.Set, file string) (speed.Case, error) {
			return speed.PaperNetwork.Case(s, 128, file)
		}},
		alone("convolution 3x3 of 16 on 1x32x32, batch 128", speed.FirstImages.Case),
		alone("convolution 3x3 of 16 on 16x32x32, batch 128", speed.LaterImages.Case),
	}
}

func forestCases() (all []toMeasure) {
	for _, shape := range []speed.Shape{speed.YeastAlpha, speed.SJAFFE, speed.Movie, speed.Dense} {
		all = append(all, toMeasure{shape, shape.Name + ", growing, min_samples 5",
			speed.Growing{Trees: 50, Depth: 20, MinSamples: 5}.Grow})
	}
	for _, g := range []speed.Growing{{Trees: 50, Depth: 20, MinSamples: 20}, {Trees: 50, Depth: 20, MinSamples: 2},
		{Trees: 50, Depth: 6, MinSamples: 20}} {
		all = append(all, toMeasure{speed.Movie, fmt.Sprintf("Movie, predicting, min_samples %d, depth %d", g.MinSamples,
			g.Depth), g.Predict})
	}
	return all
}

func boostCases() (all []toMeasure) {
	for _, shape := range []speed.Shape{speed.Large, speed.Movie} {
		all = append(all, toMeasure{shape, shape.Name, speed.UsualBoosting.Case})
	}
	return all
}

// withPeers measures cases and, if flags say so, their peers.
func (c *benchFlags) withPeers(a *cli.App, kind string, p *peerFlags, scripts []string,
	all func() []toMeasure) (failed error) {
	if err := p.check(); err != nil {
		return err
	}
	dir := ""
	if p.Peers {
		temp, err := tempdir.Make("bench")
		if err != nil {
			return err
		}
		dir = temp.Path
		defer func() { failed = errors.Join(failed, temp.Remove()) }()
	}
	var wanted []toMeasure
	for _, m := range all() {
		if c.wants(m.name) {
			wanted = append(wanted, m)
		}
	}
	cases := func() ([]speed.Case, []speed.Source, error) { return casesOf(wanted, p.DataDir, dir) }
	return c.measure(a, kind, &peerRun{peerFlags: *p, dir: dir, scripts: scripts}, cases)
}

// casesOf opens the datasets of the chosen cases, each once.
func casesOf(all []toMeasure, folder, dir string) (cases []speed.Case, sources []speed.Source, err error) {
	sets := make(map[string]*speed.Set)
	for _, m := range all {
		s := sets[m.shape.Name]
		if s == nil && m.shape.Name != "" {
			if s, err = m.shape.Open(folder); err != nil {
				return nil, nil, err
			}
			sets[m.shape.Name] = s
			sources = append(sources, s.Source)
		}
		file := ""
		if dir != "" && s != nil {
			if file, err = s.ForPeers(dir); err != nil {
				return nil, nil, err
			}
		}
		c, err := m.with(s, file)
		if err != nil {
			return nil, nil, err
		}
		c.Name = m.name
		cases = append(cases, c)
	}
	return cases, sources, nil
}

// peerRun says which peers run, and names the folders of their files.
type peerRun struct {
	peerFlags
	dir     string
	scripts []string
}

// start starts the peers that can run here.
func (p *peerRun) start(ctx context.Context, note func(string)) (running []*speed.Peer, skipped []speed.Skipped,
	err error) {
	if !p.Peers {
		return nil, nil, nil
	}
	if err := peers.Write(p.dir); err != nil {
		return nil, nil, err
	}
	for _, script := range p.scripts {
		note("starting " + script)
		peer, err := speed.StartPeer(ctx, p.Python, filepath.Join(p.dir, script))
		var absent *speed.Absent
		switch {
		case errors.As(err, &absent):
			skipped = append(skipped, speed.Skipped{Peer: script, Reason: absent.Reason})
		case err != nil:
			return running, nil, fmt.Errorf("%s: %w", script, err)
		default:
			running = append(running, peer)
		}
	}
	return running, skipped, nil
}

// wants reports whether --rows chooses a name.
func (c *benchFlags) wants(name string) bool {
	if len(c.Rows) == 0 {
		return true
	}
	for _, text := range c.Rows {
		if strings.Contains(strings.ToLower(name), strings.ToLower(text)) {
			return true
		}
	}
	return false
}

// measure measures cases on one core and prints the report.
func (c *benchFlags) measure(a *cli.App, kind string, p *peerRun, open func() ([]speed.Case, []speed.Source,
	error)) (err error) {
	began := time.Now()
	if c.Runs < 1 {
		return cli.Usagef("--runs %d: want at least 1", c.Runs)
	}
	m := progress.New(a)
	defer m.Clear()
	cases, sources, err := open()
	if err != nil {
		return err
	}
	if len(cases) == 0 {
		return cli.Usagef("--rows %s: no line of bench %s has this text in its name", strings.Join(c.Rows, " --rows "), kind)
	}
	running, skipped, err := p.start(a.Ctx, m.Show)
	defer func() {
		for _, peer := range running {
			peer.Close()
		}
	}()
	if err != nil {
		return err
	}
	defer garbage.Frugal.Begin()()                  // as training has it
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one core for everything, the collector included
	r, err := speed.Measure(a.Ctx, kind, cases, running, speed.Options{Runs: c.Runs, Limit: benchLimit - time.Since(began),
		Note: m.Show})
	if err != nil {
		return err
	}
	r.Data, r.Skipped = sources, skipped
	m.Clear()
	return a.Print(r, (&benchText{r, c.Runs}).write)
}

// benchText is a report of measurements on one core, for people.
type benchText struct {
	*speed.Report
	wanted int // runs that were asked for
}

func (t *benchText) write(w io.Writer) {
	writeMachine(w, t.Report)
	for _, s := range t.Data {
		if s.Generated {
			fmt.Fprintf(w, "%s: generated\n", s.Name)
		} else {
			fmt.Fprintf(w, "%s: %s\n", s.Name, s.File)
		}
	}
	fmt.Fprintf(w, "%s, interleaved: medians (least to greatest)\n", units.Plural(t.Runs, "run"))
	if t.Runs < t.wanted {
		fmt.Fprintf(w, "the time limit was reached before all %d runs\n", t.wanted)
	}
	fmt.Fprintln(w)
	t.rows(w)
	t.peers(w)
	t.steps(w)
	for _, s := range t.Skipped {
		fmt.Fprintf(w, "\nthe peer %s was skipped: %s\n", s.Peer, s.Reason)
	}
}

// writeMachine writes the properties of the machine on which the results depend.
func writeMachine(w io.Writer, r *speed.Report) {
	m := r.Machine
	fmt.Fprintf(w, "%s, %s, %s; kernels: %s\n", m.Processor, units.Plural(m.Cores, "core"), m.System, m.Kernels)
	var versions []string
	for name, number := range r.Versions {
		versions = append(versions, name+" "+number)
	}
	slices.Sort(versions)
	fmt.Fprintln(w, strings.Join(versions, ", "))
}

// rows writes the times of Coppice.
func (t *benchText) rows(w io.Writer) {
	table := cli.NewTable(w, []string{"", "", "Coppice", "K-L"}, 4)
	last := ""
	for _, r := range t.Rows {
		table.AppendRow(cli.Row(once(&last, r.Name), r.Of, spanOf(r.Seconds), loss(r.Loss)))
	}
	table.Render()
}

// peers writes the times of peers, and their ratio to the time of Coppice.
func (t *benchText) peers(w io.Writer) {
	if !slices.ContainsFunc(t.Rows, func(r speed.Result) bool { return len(r.Peers) > 0 }) {
		return
	}
	fmt.Fprintln(w)
	table := cli.NewTable(w, []string{"", "", "peer", "takes", "times Coppice", "K-L"}, 6)
	last := ""
	for _, r := range t.Rows {
		for _, p := range r.Peers {
			table.AppendRow(cli.Row(once(&last, r.Name), r.Of, p.Peer, spanOf(p.Seconds),
				fmt.Sprintf("%.1f (%.1f to %.1f)", p.Ratio.Median, p.Ratio.Min, p.Ratio.Max), loss(p.Loss)))
		}
	}
	table.Render()
}

// steps writes the K-L divergence after each tree, and compares trees of peers at equal seconds and equal K-L.
func (t *benchText) steps(w io.Writer) {
	for _, r := range t.Rows {
		if len(r.Steps) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s, last run: K-L after each tree; without trees, it is %s\n\n", r.Name, loss(r.Start))
		header, right := []string{"tree", "Coppice", "K-L"}, []int{1, 2, 3}
		for _, p := range r.Peers {
			header, right = append(header, p.Peer, "K-L"), append(right, len(header)+1, len(header)+2)
		}
		table := cli.NewTable(w, header, right...)
		for i, s := range r.Steps {
			row := []string{strconv.Itoa(i + 1), span(s.Seconds), loss(s.Loss)}
			for _, p := range r.Peers {
				row = append(row, span(p.Steps[i].Seconds), loss(p.Steps[i].Loss))
			}
			table.AppendRow(cli.Row(row...))
		}
		table.Render()
		for _, p := range r.Peers {
			if p.Equal == nil {
				continue
			}
			fmt.Fprintf(w, "%s takes %.1f times as long to the same K-L; in the time of Coppice's training, it reaches %s\n",
				p.Peer, p.Equal.Ratio, loss(p.Equal.Loss))
		}
	}
}

// once returns a name if it differs from the last one.
func once(last *string, name string) string {
	if *last == name {
		return ""
	}
	*last = name
	return name
}

func loss(v float64) string {
	if v == 0 {
		return ""
	}
	return cli.Measure(v)
}

// span writes seconds with three digits: 1.23 ms.
func span(seconds float64) string {
	for _, u := range []struct {
		least float64
		name  string
	}{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {0, "ns"}} {
		if seconds >= u.least {
			scale := map[string]float64{"s": 1, "ms": 1e3, "µs": 1e6, "ns": 1e9}[u.name]
			return digits(seconds*scale) + " " + u.name
		}
	}
	return "-"
}

// spanOf writes a median and its spread.
func spanOf(s speed.Spread) string {
	return fmt.Sprintf("%s (%s to %s)", span(s.Median), span(s.Min), span(s.Max))
}

// digits writes a number with three digits.
func digits(v float64) string {
	switch {
	case v >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
