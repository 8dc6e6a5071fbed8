package page

import (
	"encoding/json"
	"net/url"

	"github.com/coppice-ldl/coppice/protocol"
)

// SpecOf is specOf. It returns the number of mistakes.
func SpecOf(form url.Values) (s protocol.Spec, mistakes int) {
	s, list := specOf(form)
	return s, len(list)
}

// ValuesOf is valuesOf.
func ValuesOf(given json.RawMessage) (url.Values, error) { return valuesOf(given) }

// SpecText is specText.
func SpecText(s *protocol.Spec) string { return specText(s) }
