// Package progress shows the progress of a command: on a terminal, as lines of a log, or as lines of JSON.
package progress

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/printable"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/remaining"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	quiet     = 2 * time.Second        // work that ends sooner shows nothing
	quietWait = 900 * time.Millisecond // a shorter wait shows nothing
	waitEvery = 10 * time.Second       // between equal lines about a wait
	lineEvery = 2 * time.Second        // between lines of progress, if stderr is no terminal
	drawEvery = 150 * time.Millisecond // between drawings of one line on a terminal
)

// Meter shows progress on stderr: on a terminal as one line that is redrawn, otherwise as a line now and then. Work of
// less than two seconds shows nothing.
type Meter struct {
	w        io.Writer
	terminal bool
	size     func() (columns, lines int) // of the terminal, 0 if it is not known; users resize it
	Live     bool                        // true if several lines are redrawn, not one
	library  bool                        // true if w passes on what a command writes to a library
	now      func() time.Time

	start, last time.Time
	first       *round.Progress // what was shown first; rates count from it
	firstAt     time.Time
	shown       bool
	told        *progressLines // the progress in JSON; nil without -o jsonl
	waits       string         // the last line about a wait
	waitsAt     time.Time
	command     func(text string) string // returns a command about the same cluster
	Notes       []string                 // notes and warnings about data
	Quiet       bool                     // true if notes are not written, because JSON has them
	Targets     bool                     // true if losses are squared errors of targets
}

// New returns a meter that writes to the stderr of a command, and its progress to stdout with -o jsonl.
func New(a *cli.App) *Meter {
	w := printable.Unwrap(a.Stderr) // the terminal must obey the escape sequences of the meter
	f, _ := w.(*os.File)
	m := &Meter{w: w, library: a.ForLibrary(), told: newProgressLines(a), command: a.Command,
		terminal: cli.IsTerminal(w), now: time.Now}
	m.size = func() (columns, lines int) {
		size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err != nil {
			return 0, 0
		}
		return int(size.Col), int(size.Row)
	}
	m.start = m.now()
	return m
}

// NewLive returns a meter that may draw several lines: if stdout and stderr are terminals, and the output is text.
func NewLive(a *cli.App) *Meter {
	m := New(a)
	m.Live = m.terminal && a.Output == cli.Text && cli.IsTerminal(a.Data)
	return m
}

// Show writes text if the last line is old enough.
func (m *Meter) Show(text string) { m.ShowAll(text, nil) }

// ShowAll is Show with further lines on a live meter. more returns the lines that fit into the given columns and lines.
func (m *Meter) ShowAll(text string, more func(columns, lines int) []string) {
	now, every := m.now(), lineEvery
	if m.terminal {
		every = drawEvery
	}
	if now.Sub(m.start) < quiet || now.Sub(m.last) < every {
		return
	}
	m.last, m.shown = now, true
	switch {
	case m.Live && more != nil:
		columns, lines := m.size()
		m.draw(append([]string{text}, more(columns-1, lines-2)...), columns)
	case m.terminal:
		columns, _ := m.size()
		fmt.Fprintf(m.w, "\r\x1b[K%s", fit(printable.Line(text), columns))
	default:
		if !m.library {
			fmt.Fprintln(m.w, printable.Line(text))
		}
	}
}

// draw writes lines over the lines that were drawn before. It leaves the cursor at the beginning of the first line, so
// that other text begins there.
func (m *Meter) draw(lines []string, columns int) {
	var b strings.Builder
	b.WriteString("\r\x1b[J")
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(fit(printable.Line(line), columns))
	}
	b.WriteString("\r")
	if n := len(lines) - 1; n > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", n)
	}
	io.WriteString(m.w, b.String())
}

// Clear removes what was drawn on a terminal, so that other text can follow.
func (m *Meter) Clear() {
	switch {
	case m.Live && m.shown:
		fmt.Fprint(m.w, "\r\x1b[J")
	case m.terminal && m.shown:
		fmt.Fprint(m.w, "\r\x1b[K")
	}
}

// waiting shows what a job waits for. A new text is shown at once.
func (m *Meter) waiting(text string) {
	now := m.now()
	same := text == m.waits
	if now.Sub(m.start) < quietWait || same && !m.terminal && now.Sub(m.waitsAt) < waitEvery {
		return
	}
	m.waits, m.waitsAt, m.last = text, now, time.Time{}
	m.start = now.Add(-quiet) // the next text is shown
	m.Show(text)
}

// note writes a permanent line about how data is read.
func (m *Meter) note(text errtext.Text) {
	m.Clear()
	if m.Notes = append(m.Notes, text.String()); cli.ToLibrary(m.w, "info", text) || m.Quiet {
		return
	}
	fmt.Fprintln(m.w, printable.Text(text.String()))
}

// warn writes a permanent warning.
func (m *Meter) warn(text errtext.Text) {
	m.Clear()
	m.Notes = append(m.Notes, text.String())
	if !cli.ToLibrary(m.w, "warning", text) {
		fmt.Fprintf(m.w, "warning: %s\n", printable.Text(text.String()))
	}
}

// training shows the progress of a job.
func (m *Meter) training(p round.Progress) {
	now := m.now()
	if m.first == nil {
		m.first, m.firstAt = &p, now
	}
	m.told.put(p)
	m.Show(m.trainingLine(p, *m.first, now.Sub(m.firstAt)))
}

// trainingLine describes p; elapsed is the time since first.
func (m *Meter) trainingLine(p, first round.Progress, elapsed time.Duration) string {
	var parts []string
	if p.Steps > 0 {
		parts = append(parts, fmt.Sprintf("%3.0f %%", 100*float64(p.Step)/float64(p.Steps)),
			"step "+Step(&p))
	} else {
		parts = append(parts, "step "+units.Count(p.Step))
	}
	if p.Loss >= 0 {
		parts = append(parts, targetLoss(Loss(p.Loss), m.Targets))
	}
	if s := elapsed.Seconds(); s > 0 && p.Samples > first.Samples {
		parts = append(parts, units.Count(uint64(float64(p.Samples-first.Samples)/s))+" samples/s")
		if left, atMost := remaining.Steps(&p); left > 0 && p.Step > first.Step {
			e := remaining.Estimate{Seconds: s * left / float64(p.Step-first.Step), AtMost: atMost}
			parts = append(parts, "ETA "+e.Text())
		}
	}
	if p.Phase != "" {
		parts = append(parts, p.Phase)
	}
	return strings.Join(parts, "  ")
}

// Experiment writes how many runs of an experiment have ended, with -o jsonl. It writes a line if another run has
// ended, or if the jobs wait for something else.
func (m *Meter) Experiment(p Runs) {
	l := m.told
	if l == nil || p.Runs == l.runs.Runs && p.Done == l.runs.Done && p.Waiting == l.runs.Waiting {
		return
	}
	l.runs = p
	l.out.Encode(struct {
		Progress Runs `json:"progress"`
	}{p})
}

// Job shows a job's state.
func (m *Meter) Job(j *protocol.JobInfo) {
	if now := (jobState{j.State, j.Waiting, j.WaitingFor}); m.told != nil && now != m.told.state && !j.State.Final() {
		m.told.state = now
		m.told.out.Encode(now)
	}
	switch {
	case j.WaitingFor != "":
		m.first = nil // rates count from the next progress
		m.waiting(fmt.Sprintf("job %s is %s and waits: %s", j.Name, j.State, j.Waiting))
	case j.State == protocol.Queued:
		m.first = nil
		m.Show(fmt.Sprintf("job %s is queued", j.Name))
	case j.State == protocol.Paused:
		m.first = nil
		m.Show(fmt.Sprintf("job %s is paused; to resume it: %s", j.Name, m.command("job resume "+j.Name)))
	case j.Progress != nil:
		m.Targets = j.Job != nil && j.Job.Bounds != nil
		m.training(*j.Progress)
	}
}

// pulseEvery is the interval at which a pulse redraws.
const pulseEvery = 500 * time.Millisecond

// Pulse shows the progress of a job in this process, also while the job reports nothing: a tree or an exact fit may
// take minutes.
type Pulse struct {
	mu    sync.Mutex // guards meter and last
	meter *Meter
	began time.Time
	last  *round.Progress // nil before the first progress

	over  chan struct{}
	ended sync.WaitGroup
}

// StartPulse starts a pulse, which the caller stops.
func StartPulse(m *Meter) *Pulse {
	p := &Pulse{meter: m, began: m.now(), over: make(chan struct{})}
	p.ended.Go(func() {
		every := time.NewTicker(pulseEvery)
		defer every.Stop()
		for {
			select {
			case <-p.over:
				return
			case <-every.C:
				p.again()
			}
		}
	})
	return p
}

// Training shows what the job reports.
func (p *Pulse) Training(told round.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = &told
	p.meter.training(told)
}

// again shows the last report of the job again.
func (p *Pulse) again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.meter.Show("training for " + units.Duration(p.meter.now().Sub(p.began).Seconds()))
		return
	}
	p.meter.training(*p.last)
}

// Stop ends the pulse: nothing is shown after it returns.
func (p *Pulse) Stop() {
	close(p.over)
	p.ended.Wait()
}

// Reading returns options that show the progress through data, with a rate for each phase. doing names the work.
func (m *Meter) Reading(ctx context.Context, doing string, checks importer.Checks) importer.Options {
	var first importer.Progress // of the phase
	var firstAt time.Time
	progress := func(p importer.Progress) {
		now := m.now()
		if p.Phase != first.Phase {
			first, firstAt = p, now
		}
		m.Show(readingLine(doing, p, first, now.Sub(firstAt)))
	}
	return importer.Options{Checks: checks, Context: ctx, Warn: m.warn, Note: m.note, Progress: progress}
}

// Writing returns a writer that shows how much was written, and that fails when ctx ends.
func (m *Meter) Writing(ctx context.Context, doing string, w io.Writer) io.Writer {
	return &writing{ctx: ctx, meter: m, doing: doing, to: w}
}

type writing struct {
	ctx   context.Context
	meter *Meter
	doing string
	to    io.Writer
	n     int64
}

// Write implements io.Writer.
func (w *writing) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.to.Write(b)
	w.n += int64(n)
	w.meter.Show(w.doing + ": " + units.Format(w.n))
	return n, err
}

// readingLine describes p. first is the first progress of the same phase, and elapsed the time since it.
func readingLine(doing string, p, first importer.Progress, elapsed time.Duration) string {
	var parts []string
	if p.Part >= 0 {
		parts = append(parts, fmt.Sprintf("%3.0f %%", 100*p.Part))
	}
	if p.Phase != "read" && p.Phase != "write" {
		doing = fmt.Sprintf("%s (%s)", doing, p.Phase)
	}
	what, amount := "samples", units.Count(p.Done)
	if p.Phase == "store" || p.Phase == "upload" {
		what = "shards"
	}
	if p.Of > 0 {
		amount += " of " + units.Count(p.Of)
	}
	parts = append(parts, fmt.Sprintf("%s: %s %s", doing, amount, what))
	if s := elapsed.Seconds(); s > 0 && p.Done > first.Done {
		if what == "samples" {
			if rate := float64(p.Done-first.Done) / s; rate < 10 { // images may take more than a second each
				parts = append(parts, fmt.Sprintf("%.1f samples/s", rate))
			} else {
				parts = append(parts, units.Count(uint64(rate))+" samples/s")
			}
		}
		if p.Part < 1 && p.Part > first.Part && first.Part >= 0 {
			parts = append(parts, "ETA "+units.Duration(s*(1-p.Part)/(p.Part-first.Part)))
		}
	}
	return strings.Join(parts, "  ")
}

// Step writes the step of a progress, and the number of all steps if it is known.
func Step(p *round.Progress) string {
	switch {
	case p.MostSteps > 0:
		return units.Count(p.Step) + " of at most " + units.Count(p.MostSteps)
	case p.Steps > 0:
		return units.Count(p.Step) + " of " + units.Count(p.Steps)
	}
	return units.Count(p.Step)
}

// Loss writes a loss. Before the first gradient step it is not known and negative.
func Loss(loss float64) string {
	if loss < 0 {
		return "not known"
	}
	return "K-L " + cli.Measure(loss)
}

// LossOn is Loss of a job, which may be nil. The loss of targets in bounds is a squared error of scaled targets.
func LossOn(j *round.Job, loss float64) string {
	return targetLoss(Loss(loss), j != nil && j.Bounds != nil)
}

// targetLoss names the loss of targets in a text of Loss.
func targetLoss(text string, targets bool) string {
	if rest, ok := strings.CutPrefix(text, "K-L "); ok && targets {
		return "squared error " + rest
	}
	return text
}

// LossOf is Loss of a model with measures. They may be nil.
func LossOf(added *measures.Added, loss float64) string {
	return targetLoss(Loss(loss), added != nil && added.Targets != nil)
}

// progressLines writes the output of `coppice train -o jsonl`: a line of JSON for each progress of the job, one for
// each state before its end, and one for its result.
type progressLines struct {
	out   *json.Encoder
	last  round.Progress
	runs  Runs
	state jobState
}

// Runs says how many runs of an experiment have ended.
type Runs struct {
	Runs        int     `json:"runs"`
	Done        int     `json:"runs_done"`
	SecondsLeft float64 `json:"seconds_left,omitempty"` // 0 if not known
	Waiting     string  `json:"waiting,omitempty"`      // what a job waits for
}

// jobState is a line about the state of a job on a cluster.
type jobState struct {
	State      protocol.JobState   `json:"state"`
	Waiting    string              `json:"waiting,omitempty"`
	WaitingFor protocol.WaitReason `json:"waiting_for,omitempty"`
}

// newProgressLines returns nil unless -o jsonl asks for them.
func newProgressLines(a *cli.App) *progressLines {
	if a.Output != cli.JSONL {
		return nil
	}
	return &progressLines{out: a.Encoder()}
}

// put writes p if it has changed. An error of stdout makes the command fail at its end.
func (l *progressLines) put(p round.Progress) {
	if l == nil || p == l.last {
		return
	}
	l.last = p
	l.out.Encode(struct {
		Progress round.Progress `json:"progress"`
	}{p})
}

// fit cuts a line to fewer than columns characters, so that it does not wrap. 0 columns leave it as it is.
func fit(line string, columns int) string {
	runes := []rune(line)
	if columns <= 1 || len(runes) < columns {
		return line
	}
	return string(runes[:columns-2]) + "…"
}
