package dataset

import (
	"fmt"
	"strings"
)

// fileContents lists the variables of a .mat or .npz file, for messages.
type fileContents []string

// maxListed bounds the list.
const maxListed = 20

func (h *fileContents) add(name, kind string, shape ...int) {
	if name == "" || len(*h) > maxListed { // one more than are listed
		return
	}
	dims := make([]string, len(shape))
	for i, n := range shape {
		dims[i] = fmt.Sprint(n)
	}
	*h = append(*h, fmt.Sprintf("%.100s (%s)", name, strings.TrimSpace(strings.Join(dims, " x ")+" "+kind)))
}

// missing returns an error that says that a file has no such variable, lists those that it
// has, and names the flag that chooses another.
func (h fileContents) missing(what, name, flag string, err error) error {
	return kindErrorf(err, "the file has no %s %q; it has %s; name the right one with %s", what, name, h.list(), flag)
}

func (h fileContents) list() string {
	list := strings.Join(h[:min(maxListed, len(h))], ", ")
	switch {
	case len(h) == 0:
		return "nothing"
	case len(h) > maxListed:
		return list + ", ..."
	}
	return list
}
