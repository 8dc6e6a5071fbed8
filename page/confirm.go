package page

import (
	"fmt"
	"net/http"

	"github.com/coppice-ldl/coppice/protocol"
)

// question is what the page asks before a change is made.
type question struct {
	Title, Text, Button string
	in                  func(protocol.JobState) bool // reports whether the change is possible in a state
}

// confirmPage is what the page of a question shows.
type confirmPage struct {
	question
	Section, Key string // of the address of what is changed
	Change       string
	Name         string
	State        protocol.JobState
	Owner, About string
	May          bool // true if the caller may make the change
}

// Thing names what is changed.
func (p *confirmPage) Thing() string { return p.Section[:len(p.Section)-1] }

// Possible reports whether the change can be made.
func (p *confirmPage) Possible() bool { return p.May && p.in(p.State) }

// ask shows the question about the change that the path names. It reads what is changed into a value, and describe
// then describes that.
func (v *visit) ask(questions map[string]question, path string, into any, describe func(*confirmPage)) (*view, error) {
	p := &confirmPage{Change: v.PathValue("change")}
	var ok bool
	if p.question, ok = questions[p.Change]; !ok {
		return nil, &Error{Status: http.StatusNotFound, Text: fmt.Sprintf("There is no page %s.", v.URL.Path)}
	}
	if err := v.get(path, nil, into); err != nil {
		return nil, err
	}
	describe(p)
	return &view{Title: p.Title + " " + p.Name, Section: p.Section, Template: "confirm", Data: p, Still: true}, nil
}
