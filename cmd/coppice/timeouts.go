package main

import (
	"io"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// rung is a timeout as --print-timeouts prints it with -o json.
type rung struct {
	Name  string   `json:"name"`
	MS    float64  `json:"ms"`
	Above []string `json:"above"`
	What  string   `json:"what"`
}

// printTimeouts prints the ladder that was checked.
func printTimeouts(a *app, t *protocol.Timeouts) error {
	var list []rung
	for _, r := range t.Rungs() {
		list = append(list, rung{r.Name, float64(r.Value) / float64(time.Millisecond), append([]string{}, r.Above...), r.What})
	}
	return a.print(list, func(w io.Writer) {
		tab := newTable(w, []string{"TIMEOUT", "VALUE", "ABOVE", "WHAT"}, 2)
		for _, r := range t.Rungs() {
			tab.AppendRow(rowOf(r.Name, r.Value.String(), strings.Join(r.Above, ", "), r.What))
		}
		tab.Render()
	})
}
