package dataset

import (
	"fmt"
	"strings"
)

// holdings lists what a .mat or .npz file holds, for messages.
type holdings []string

// maxHoldings bounds the list.
const maxHoldings = 20

func (h *holdings) add(name, kind string, shape ...int) {
	if name == "" {
		return
	}
	dims := make([]string, len(shape))
	for i, n := range shape {
		dims[i] = fmt.Sprint(n)
	}
	*h = append(*h, strings.TrimSpace(fmt.Sprintf("%s (%s %s)", name, strings.Join(dims, " x "), kind)))
}

// lack says that a file has no such variable, what it has, and which flag chooses
// another.
func (h holdings) lack(what, name, flag string, err error) error {
	list := strings.Join(h[:min(maxHoldings, len(h))], ", ")
	switch {
	case len(h) == 0:
		list = "nothing"
	case len(h) > maxHoldings:
		list += ", ..."
	}
	return sentencef(err, "no %s %q; the file holds %s; %s names the right one", what, name, list, flag)
}
