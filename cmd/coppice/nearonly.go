package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
)

// suggested matches how an error about a flag, or a word, that is not known ends.
var suggested = regexp.MustCompile(`^(unexpected argument|unknown flag) (\S+), did you mean (?:one of )?((?:"[^"]+"(?:, )?)+)\?$`)

// nearOnly takes what is not near out of the suggestions of an error.
func nearOnly(err error) error {
	parts := suggested.FindStringSubmatch(err.Error())
	if parts == nil {
		return err
	}
	word, near := parts[2], []string{}
	for _, s := range strings.Split(parts[3], ", ") {
		if name := strings.Trim(s, `"`); param.Near(strings.TrimLeft(word, "-"), strings.TrimLeft(name, "-")) || begins(name, word) {
			near = append(near, s)
		}
	}
	text := parts[1] + " " + word
	switch len(near) {
	case 0:
	case 1:
		text += fmt.Sprintf(", did you mean %s?", near[0])
	default:
		text += fmt.Sprintf(", did you mean one of %s?", strings.Join(near, ", "))
	}
	return reworded{err, text}
}

// begins reports whether a name begins with a word of three letters at least.
func begins(name, word string) bool {
	return len(strings.TrimLeft(word, "-")) >= 3 && strings.HasPrefix(name, word)
}

// reworded is an error in other words.
type reworded struct {
	error
	text string
}

func (e reworded) Unwrap() error { return e.error }

func (e reworded) Error() string { return e.text }
