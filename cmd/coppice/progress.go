package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
	"golang.org/x/sys/unix"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/printable"
)

const (
	quiet     = 2 * time.Second        // what ends sooner shows nothing
	quietWait = 900 * time.Millisecond // so does what waits for less
	waitEvery = 10 * time.Second       // between lines that say the same of what is waited for
	lineEvery = 2 * time.Second        // between lines that stay
	drawEvery = 150 * time.Millisecond // between drawings of one line on a terminal
)

// meter shows how far something is on stderr: on a terminal one line that is
// written again and again, else a line now and then. It shows nothing of what
// takes less than two seconds.
type meter struct {
	w        io.Writer
	terminal bool
	size     func() (columns, lines int) // of the terminal: it may be made wider
	live     bool                        // several lines are drawn again and again, not one
	now      func() time.Time

	start, last time.Time
	first       *round.Progress // as seen first: rates count from there
	firstAt     time.Time
	shown       bool
	told        *progressLines // where programs read the progress of a job; nil: nowhere
	waits       string         // what was said last of what is waited for
	waitsAt     time.Time
	said        []string // notes and warnings about data
	quiet       bool     // notes are not written: JSON has them
}

func newMeter(w io.Writer) *meter {
	w = printable.Unwrap(w) // the escape sequences of the meter are obeyed; its texts are made printable
	f, ok := w.(*os.File)
	m := &meter{w: w, terminal: ok && isatty.IsTerminal(f.Fd()), now: time.Now, size: func() (columns, lines int) { return terminalSize(f) }}
	m.start = m.now()
	return m
}

// newLiveMeter returns a meter that may draw several lines: where stdout and stderr are terminals,
// and people read them.
func (a *app) newLiveMeter() *meter {
	m := newMeter(a.stderr)
	out, ok := a.data.(*checkedWriter)
	if ok && a.output == outputText {
		f, ok := out.w.(*os.File)
		m.live = m.terminal && ok && isatty.IsTerminal(f.Fd())
	}
	return m
}

// show writes text if it is time to.
func (m *meter) show(text string) { m.showAll(text, nil) }

// showAll is show with further lines, where several are drawn; more returns those that fit into so
// many columns and lines.
func (m *meter) showAll(text string, more func(columns, lines int) []string) {
	now, every := m.now(), lineEvery
	if m.terminal {
		every = drawEvery
	}
	if now.Sub(m.start) < quiet || now.Sub(m.last) < every {
		return
	}
	m.last, m.shown = now, true
	switch {
	case m.live && more != nil:
		columns, lines := m.size()
		m.draw(append([]string{text}, more(columns-1, lines-2)...), columns)
	case m.terminal:
		columns, _ := m.size()
		fmt.Fprintf(m.w, "\r\x1b[K%s", fit(printable.Line(text), columns))
	default:
		fmt.Fprintln(m.w, printable.Line(text))
	}
}

// draw writes lines over those that were written before. The cursor stays at the beginning of the
// first line, so that other text begins there.
func (m *meter) draw(lines []string, columns int) {
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

// waiting says for what a job waits, at once where that is new.
func (m *meter) waiting(text string) {
	now := m.now()
	same := text == m.waits
	if now.Sub(m.start) < quietWait || same && !m.terminal && now.Sub(m.waitsAt) < waitEvery {
		return
	}
	m.waits, m.waitsAt, m.last = text, now, time.Time{}
	m.start = now.Add(-quiet) // whatever follows is shown
	m.show(text)
}

// note writes a line about how data is read, which stays.
func (m *meter) note(text string) {
	m.clear()
	if m.said = append(m.said, text); !m.quiet {
		fmt.Fprintln(m.w, printable.Text(text))
	}
}

// warn writes a warning, which stays.
func (m *meter) warn(text string) {
	m.clear()
	m.said = append(m.said, text)
	fmt.Fprintf(m.w, "warning: %s\n", printable.Text(text))
}

// training shows the progress of a job.
func (m *meter) training(p round.Progress) {
	now := m.now()
	if m.first == nil {
		m.first, m.firstAt = &p, now
	}
	m.told.put(p)
	m.show(trainingLine(p, *m.first, now.Sub(m.firstAt)))
}

// trainingLine describes p; elapsed is the time since first.
func trainingLine(p, first round.Progress, elapsed time.Duration) string {
	var parts []string
	if p.Steps > 0 {
		parts = append(parts, fmt.Sprintf("%3.0f %%", 100*float64(p.Step)/float64(p.Steps)),
			"step "+stepText(&p))
	} else {
		parts = append(parts, "step "+count(p.Step))
	}
	if p.Loss >= 0 {
		parts = append(parts, "K-L "+figure(p.Loss))
	}
	if s := elapsed.Seconds(); s > 0 && p.Samples > first.Samples {
		parts = append(parts, count(uint64(float64(p.Samples-first.Samples)/s))+" samples/s")
		if left, atMost := stepsLeft(&p); left > 0 && p.Step > first.Step {
			e := estimate{Seconds: s * left / float64(p.Step-first.Step), AtMost: atMost}
			parts = append(parts, "ETA "+e.text())
		}
	}
	if p.Phase != "" {
		parts = append(parts, p.Phase)
	}
	return strings.Join(parts, "  ")
}

// clear takes what was drawn on a terminal away, for other text to follow.
func (m *meter) clear() {
	switch {
	case m.live && m.shown:
		fmt.Fprint(m.w, "\r\x1b[J")
	case m.terminal && m.shown:
		fmt.Fprint(m.w, "\r\x1b[K")
	}
}

// pulseEvery is the time from one look to the next at whether there is something to show.
const pulseEvery = 500 * time.Millisecond

// pulse shows the progress of a job that this process trains, also while the job tells nothing: a
// tree, or an exact fit, may take minutes.
type pulse struct {
	mu    sync.Mutex // of what follows
	meter *meter
	began time.Time
	last  *round.Progress // nil: the job has told nothing

	over  chan struct{}
	ended sync.WaitGroup
}

// newPulse begins to show.
func newPulse(m *meter) *pulse {
	p := &pulse{meter: m, began: m.now(), over: make(chan struct{})}
	p.ended.Go(p.beat)
	return p
}

func (p *pulse) beat() {
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
}

// training shows what the job tells.
func (p *pulse) training(told round.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = &told
	p.meter.training(told)
}

// again shows what the job told last.
func (p *pulse) again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.meter.show("training for " + duration(p.meter.now().Sub(p.began).Seconds()))
		return
	}
	p.meter.training(*p.last)
}

// stop ends it: nothing is shown after that.
func (p *pulse) stop() {
	close(p.over)
	p.ended.Wait()
}

// readingFor shows on m how far a command is that goes through data, by what it does, with a rate for each phase.
func readingFor(ctx context.Context, doing string, checks dataset.Checks, m *meter) dataset.ImportOptions {
	var first dataset.Progress // of the phase
	var firstAt time.Time
	progress := func(p dataset.Progress) {
		now := m.now()
		if p.Phase != first.Phase {
			first, firstAt = p, now
		}
		m.show(readingLine(doing, p, first, now.Sub(firstAt)))
	}
	return dataset.ImportOptions{Checks: checks, Context: ctx, Warn: m.warn, Note: m.note, Progress: progress}
}

// readingLine describes p; elapsed is the time since first, of the same phase.
func readingLine(doing string, p, first dataset.Progress, elapsed time.Duration) string {
	var parts []string
	if p.Part >= 0 {
		parts = append(parts, fmt.Sprintf("%3.0f %%", 100*p.Part))
	}
	if p.Phase != "read" && p.Phase != "write" {
		doing = fmt.Sprintf("%s (%s)", doing, p.Phase)
	}
	what, amount := "samples", count(p.Done)
	if p.Phase == "store" || p.Phase == "upload" {
		what = "shards"
	}
	if p.Of > 0 {
		amount += " of " + count(p.Of)
	}
	parts = append(parts, fmt.Sprintf("%s: %s %s", doing, amount, what))
	if s := elapsed.Seconds(); s > 0 && p.Done > first.Done {
		if what == "samples" {
			parts = append(parts, perSecond(float64(p.Done-first.Done)/s))
		}
		if p.Part < 1 && p.Part > first.Part && first.Part >= 0 {
			parts = append(parts, "ETA "+duration(s*(1-p.Part)/(p.Part-first.Part)))
		}
	}
	return strings.Join(parts, "  ")
}

// perSecond writes a rate; images may take more than a second each.
func perSecond(rate float64) string {
	if rate < 10 {
		return fmt.Sprintf("%.1f samples/s", rate)
	}
	return count(uint64(rate)) + " samples/s"
}

// estimate is how long a job will still run.
type estimate struct {
	Rate    float64 `json:"steps_per_second,omitempty"` // 0: not known
	Seconds float64 `json:"seconds_left"`
	AtMost  bool    `json:"at_most,omitempty"` // it may end earlier
}

// text writes the seconds that are left.
func (e *estimate) text() string {
	if e.AtMost {
		return "at most " + duration(e.Seconds)
	}
	return duration(e.Seconds)
}

// stepsLeft is how many steps are to come, and whether they may be fewer; -1 where it is
// not known.
func stepsLeft(p *round.Progress) (left float64, atMost bool) {
	most := max(p.Steps, p.MostSteps)
	if p.Step == 0 || most < p.Step {
		return -1, false
	}
	return float64(most - p.Step), p.MostSteps > 0
}

// stepText tells the step of a progress, of how many.
func stepText(p *round.Progress) string {
	switch {
	case p.MostSteps > 0:
		return count(p.Step) + " of at most " + count(p.MostSteps)
	case p.Steps > 0:
		return count(p.Step) + " of " + count(p.Steps)
	}
	return count(p.Step)
}

// lossText writes a loss, which is negative where it is not known: before the first
// gradient step.
func lossText(loss float64) string {
	if loss < 0 {
		return "not known"
	}
	return "K-L " + figure(loss)
}

// progressLines are what `coppice train -o jsonl` prints: a line of JSON for each progress of the
// job, and one for its result.
type progressLines struct {
	out  *json.Encoder
	last round.Progress
}

// newProgressLines returns nil unless -o jsonl asks for them.
func (a *app) newProgressLines() *progressLines {
	if a.output != outputJSONL {
		return nil
	}
	return &progressLines{out: a.encoder()}
}

// put writes p unless it is as before. An error of stdout fails the command at its end.
func (l *progressLines) put(p round.Progress) {
	if l == nil || p == l.last {
		return
	}
	l.last = p
	l.out.Encode(struct {
		Progress round.Progress `json:"progress"`
	}{p})
}

// terminalSize returns the width and the height of a terminal, 0 if they are not known.
func terminalSize(f *os.File) (columns, lines int) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(size.Col), int(size.Row)
}

// fit cuts a line to less than so many columns, so that it does not wrap; 0 leaves it.
func fit(line string, columns int) string {
	runes := []rune(line)
	if columns <= 1 || len(runes) < columns {
		return line
	}
	return string(runes[:columns-2]) + "…"
}
