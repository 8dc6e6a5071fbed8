package progress

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLiveMeter: lines are drawn over each other, text that comes between stays, and at the end
// nothing is left.
func TestLiveMeter(t *testing.T) {
	m, out, pass := slowMeter(true)
	m.Live, m.size = true, func() (columns, lines int) { return 20, 10 }
	pass(quiet)
	grid := func(columns, lines int) []string {
		return []string{fmt.Sprintf("%d x %d", columns, lines), strings.Repeat("x", 30)}
	}
	m.ShowAll("first", grid)
	out.WriteString("\r\x1b[Ka note\n")
	pass(time.Second)
	m.ShowAll("second", grid)
	m.Clear()
	if got := screenOf(out); got != "a note\n" {
		t.Errorf("the screen shows %q", got)
	}
	out.Reset()
	m.draw([]string{"one", "two", strings.Repeat("x", 30)}, 20)
	if got := screenOf(out); got != "one\ntwo\n"+strings.Repeat("x", 18)+"…" {
		t.Errorf("the screen shows %q", got)
	}
}

// screenOf is what a terminal shows after some output. It knows the sequences that the meter writes.
func screenOf(out *bytes.Buffer) string {
	lines, line, column := [][]rune{nil}, 0, 0
	text := []rune(out.String())
	for i := 0; i < len(text); i++ {
		rest := string(text[i:])
		var up int
		switch {
		case strings.HasPrefix(rest, "\x1b[J"):
			lines, i = append(lines[:line], lines[line][:min(column, len(lines[line]))]), i+2
		case strings.HasPrefix(rest, "\x1b[K"):
			lines[line], i = lines[line][:min(column, len(lines[line]))], i+2
		case strings.HasPrefix(rest, "\x1b["):
			fmt.Sscanf(rest, "\x1b[%dA", &up)
			line, i = line-up, i+2+len(fmt.Sprint(up))
		case text[i] == '\r':
			column = 0
		case text[i] == '\n':
			if line, column = line+1, 0; line == len(lines) {
				lines = append(lines, nil)
			}
		default:
			lines[line] = append(lines[line][:min(column, len(lines[line]))], text[i])
			column++
		}
	}
	var shown []string
	for _, l := range lines {
		shown = append(shown, string(l))
	}
	return strings.Join(shown, "\n")
}
