package api

import (
	"fmt"
	"net/http"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/protocol"
)

// readList reads the query of a list. what takes it, for errors.
func readList(r *http.Request, what string, params []protocol.Param, q *protocol.ListQuery) error {
	if err := protocol.ReadQuery(r.URL.Query(), what, params); err != nil {
		return bad{err}
	}
	if q.Until != 0 && q.Until < q.Since {
		return fmt.Errorf("%w: until: %d is before since, %d", errBad, q.Until, q.Since)
	}
	return nil
}

// choosePart is protocol.Part, with the error of a request for a list.
func choosePart[T any](all []T, q *protocol.ListQuery, usual string,
	of func(*T) protocol.Element) (chosen []T, total int, next string, err error) {
	chosen, total, next, err = protocol.Part(all, q, usual, of)
	if err != nil {
		err = fmt.Errorf("after: %.80q: %w; list from the first element on", q.After, state.ErrNotFound)
	}
	return chosen, total, next, err
}

// partOf answers a request for a list whose elements have no object around them: the header Link says where the list
// goes on.
func partOf[T any](r *http.Request, all []T, q *protocol.ListQuery, usual string,
	of func(*T) protocol.Element) (part, error) {
	chosen, _, next, err := choosePart(all, q, usual, of)
	if err != nil {
		return part{}, err
	}
	answer := part{list: chosen}
	if next != "" {
		answer.next = r.URL.Query()
		answer.next.Set("after", next)
	}
	return answer, nil
}
