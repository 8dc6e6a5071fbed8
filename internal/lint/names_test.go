package lint

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// public names of one kind, with where each stands.
type publicName struct{ kind, name, where string }

// publicNames lists the flags, the JSON keys and the metrics with their labels.
func publicNames(t *testing.T) []publicName {
	t.Helper()
	var all []publicName
	for _, s := range public(t) {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok && f.Tag != nil {
				all = append(all, fieldNames(s, f)...)
			}
			return true
		})
	}
	row := regexp.MustCompile("^\\| `(coppice_[a-z_]+)` \\| [a-z]+ \\| ([^|]*) \\|")
	for line := range strings.Lines(read(t, "metrics/METRICS.md")) {
		if m := row.FindStringSubmatch(line); m != nil {
			all = append(all, publicName{"metric", m[1], "metrics/METRICS.md"}, publicName{"metric label", m[2], "metrics/METRICS.md"})
		}
	}
	return all
}

// fieldNames lists what a field of a struct is called outside: its flag, or its key in JSON.
func fieldNames(s *source, f *ast.Field) (all []publicName) {
	tag := tagOf(f)
	if key, _, _ := strings.Cut(tag.Get("json"), ","); key != "" {
		all = append(all, publicName{"JSON key", key, s.name})
	}
	_, isFlag := tag.Lookup("help")
	if !isFlag {
		return all
	}
	if name := tag.Get("name"); name != "" {
		return append(all, publicName{"flag", name, s.name})
	}
	for _, id := range f.Names {
		all = append(all, publicName{"flag", strings.Join(camel.FindAllString(id.Name, -1), "-"), s.name})
	}
	return all
}

// camel finds the words of a Go name, as kong makes flags of them.
var camel = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)

// TestPublicNames: no flag, JSON key, metric or label uses a word that the glossary says is
// not used.
func TestPublicNames(t *testing.T) {
	_, unused := glossary(t)
	wrong := whole(unused)
	kinds := make(map[string]int)
	for _, n := range publicNames(t) {
		kinds[n.kind]++
		if w := wrong.FindString(strings.NewReplacer("_", " ", "-", " ").Replace(n.name)); w != "" {
			t.Errorf("%s: the %s %q uses %q; %s has the word that is used", n.where, n.kind, n.name, w, glossaryPage)
		}
	}
	for kind, least := range map[string]int{"flag": 60, "JSON key": 150, "metric": 40, "metric label": 40} {
		if kinds[kind] < least {
			t.Errorf("%d names of the kind %q: this looks at the wrong things", kinds[kind], kind)
		}
	}
}
