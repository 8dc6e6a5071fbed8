package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"

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
	columns  func() int // of the terminal: it may be made wider
	lines    func() int // of the terminal
	live     bool       // several lines are drawn again and again, not one
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
	m := &meter{w: w, terminal: ok && isatty.IsTerminal(f.Fd()), now: time.Now}
	m.columns, m.lines = func() int { return columnsOf(f) }, func() int { return linesOf(f) }
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
		m.draw(append([]string{text}, more(m.columns()-1, m.lines()-2)...))
	case m.terminal:
		fmt.Fprintf(m.w, "\r\x1b[K%s", fit(printable.Line(text), m.columns()))
	default:
		fmt.Fprintln(m.w, printable.Line(text))
	}
}

// draw writes lines over those that were written before. The cursor stays at the beginning of the
// first line, so that other text begins there.
func (m *meter) draw(lines []string) {
	var b strings.Builder
	b.WriteString("\r\x1b[J")
	columns := m.columns()
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
