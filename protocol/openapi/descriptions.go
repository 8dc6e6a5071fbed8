package openapi

import (
	_ "embed"
	"strings"
)

// descriptions has a line for each schema and key: its name, a tab, and the comment of the Go type or field.
// go test ./protocol/openapi -run TestDescriptions -update writes it.
//
//go:embed descriptions.txt
var descriptions string

// describe adds the descriptions to the schemas and their keys.
func (s *schemas) describe() {
	for line := range strings.Lines(descriptions) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), "\t")
		name, key, isKey := strings.Cut(name, ".")
		if own[s.types[name]] != nil { // all documents share it
			continue
		}
		schema, _ := s.named[name].(object)
		if isKey {
			keys, _ := schema["properties"].(object)
			schema, _ = keys[key].(object)
		}
		if schema != nil && schema["description"] == nil {
			schema["description"] = text
		}
	}
}
