package experiment

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/printable"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/internal/yamltree"
	"github.com/coppice-ldl/coppice/job/enhance"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// MaxBytes bounds the text of a spec of an experiment.
const MaxBytes = 256 << 10

var topKeys = []string{"name", "seed", "datasets", "missing", "folds", "methods", "measures", "clip",
	"weighted_measures", "budget", "record", "published"}

var kind = yamltree.Kind{
	Name: "a spec of an experiment", Bytes: MaxBytes, Brackets: 4000,
	Looks: "is a YAML mapping with the keys " + strings.Join(topKeys, ", "),
}

// entry is a key of a mapping and its value.
type entry struct {
	key     string
	at      yamltree.Place // of the key
	valueAt yamltree.Place
	value   ast.Node
}

// mistake is what fail panics with: the item of the spec that is being read has a mistake, which is recorded.
type mistake struct{}

// parser reads the text of a spec into Spec.
type parser struct {
	*Spec
	reader
	ctx         context.Context // of Parse
	allSets     bool            // true if no dataset has a mistake
	allMeasures bool            // true if no measure has a mistake
}

// reader reads the values of a spec's file, and records its mistakes.
type reader struct {
	file     string // for the texts of mistakes
	mistakes Errors
	unknown  []string // keys that mappings cannot have
}

// wrong records a mistake.
func (s *reader) wrong(at yamltree.Place, format string, args ...any) {
	s.mistakes.Add(errorAt(s.file, at, format, args...))
}

// fail records a mistake and ends the reading of an item, up to the next try.
func (s *reader) fail(at yamltree.Place, format string, args ...any) {
	s.wrong(at, format, args...)
	panic(mistake{})
}

// lack is fail for a key that a mapping does not have. If there are more mistakes than before the mapping was read, the
// key may be one of them, and nothing is recorded.
func (s *reader) lack(before int, at yamltree.Place, format string, args ...any) {
	if len(s.mistakes) == before {
		s.wrong(at, format, args...)
	}
	panic(mistake{})
}

// stopped is the panic that ends Parse if its context is done.
type stopped struct{}

// goOn ends Parse if its context is done.
func goOn(ctx context.Context) {
	if ctx.Err() != nil {
		panic(stopped{})
	}
}

// try reads an item of the spec, and reports whether it has no mistake.
func (s *reader) try(read func()) (ok bool) {
	before := len(s.mistakes)
	defer func() { ok = len(s.mistakes) == before }()
	defer func() {
		if p := recover(); p != nil && p != any(mistake{}) {
			panic(p)
		}
	}()
	read()
	return true
}

// plain fails if a value stands for one elsewhere in the file, or says its type.
func (s *reader) plain(root ast.Node) {
	ast.Walk(plainVisitor{s}, root)
}

type plainVisitor struct{ *reader }

// Visit implements ast.Visitor.
func (v plainVisitor) Visit(n ast.Node) ast.Visitor {
	what := map[ast.NodeType]string{ast.AnchorType: "an anchor", ast.AliasType: "an alias",
		ast.MergeKeyType: "a merge key", ast.TagType: "a tag"}[n.Type()]
	if what != "" {
		v.fail(placeOf(n), "found %s: %s cannot have anchors (&name), aliases (*name), merge keys (<<) or tags (!!str); "+
			"write the value itself", what, kind.Name)
	}
	return v
}

// mapping lists the entries of a mapping that have one of the keys; nil: any key. Other entries are mistakes.
func (s *reader) mapping(n ast.Node, what string, keys []string) []entry {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		s.fail(placeOf(n), "%s: want a mapping of keys to values", what)
	}
	var list []entry
	seen := make(map[string]yamltree.Place)
	for _, v := range values {
		e := entry{at: placeOf(v.Key), valueAt: placeOf(v.Value), value: v.Value}
		key, ok := v.Key.(ast.Node)
		if ok {
			e.key, ok = yamltree.Scalar(key)
		}
		if !ok {
			s.wrong(e.at, "%s: every key must be a plain word", what)
			continue
		}
		if first, twice := seen[e.key]; twice {
			s.wrong(e.at, "%s: the key %s is given twice, first in line %d", what, e.key, first.Line)
			continue
		}
		seen[e.key] = e.at
		if keys != nil && !slices.Contains(keys, e.key) {
			s.unknown = append(s.unknown, e.key)
			s.wrong(e.at, "%s: unknown key %q%s; the keys are %s", what, e.key, param.Suggest(e.key, keys),
				strings.Join(keys, ", "))
			continue
		}
		list = append(list, e)
	}
	return list
}

func placeOf(n ast.Node) yamltree.Place {
	if n == nil {
		return yamltree.Place{}
	}
	return yamltree.PlaceOf(n.GetToken())
}

// text returns the text of a value.
func (s *reader) text(e entry) string {
	v, ok := yamltree.Scalar(e.value)
	if !ok {
		s.fail(e.at, "%s: want a single value, a number or a word", e.key)
	}
	return v
}

// sequence lists the items of a list with at least one item.
func (s *reader) sequence(e entry) []ast.Node {
	list, ok := e.value.(*ast.SequenceNode)
	if !ok {
		s.fail(e.at, "%s: want a list of values", e.key)
	}
	if len(list.Values) == 0 {
		s.fail(e.at, "%s: the list is empty", e.key)
	}
	return list.Values
}

// number reads a whole number from low to high.
func (s *reader) number(e entry, low, high int64) int64 {
	p := param.Param{Name: e.key, Kind: param.KindInt, Min: float64(low), Max: float64(high)}
	v, err := p.Parse(s.text(e))
	if err != nil {
		s.fail(e.valueAt, "%v", err)
	}
	return v.(int64)
}

// texts lists the texts of a list of values.
func (s *reader) texts(e entry) (list []string) {
	for _, n := range s.sequence(e) {
		v, ok := yamltree.Scalar(n)
		if !ok {
			s.fail(placeOf(n), "%s: want a list of numbers or words", e.key)
		}
		list = append(list, v)
	}
	return list
}

// The bounds of a budget.
const (
	leastBudget = time.Second
	mostBudget  = 10_000 * time.Hour
)

func (s *reader) seed(e entry) uint64 {
	v, err := strconv.ParseUint(s.text(e), 10, 64)
	if err != nil {
		s.fail(e.valueAt, "%s: %q is not a whole number from 0 to 2^64 - 1", e.key, s.text(e))
	}
	return v
}

// methodNameOf reads the name of a method, without the white space around it.
func (s *reader) methodNameOf(e entry) string {
	name := strings.TrimSpace(s.text(e))
	switch at := strings.IndexFunc(name, unicode.IsControl); {
	case printable.Look(name) == "":
		s.fail(e.valueAt, "name: the name is empty")
	case !utf8.ValidString(name):
		s.fail(e.valueAt, "name: %q is not valid UTF-8", name)
	case at >= 0:
		s.fail(e.valueAt, "name: %q contains the control character %U; a name is one line of text", name,
			[]rune(name[at:])[0])
	}
	return name
}

// measure records a mistake if there is no such measure.
func (s *reader) measure(at yamltree.Place, name string) {
	if known := measures.Names(); !slices.Contains(known, name) {
		s.wrong(at, "unknown measure %q%s; the measures are %s", name, param.Suggest(name, known), strings.Join(known, ", "))
	}
}

// figure reads a number, or one with its standard deviation: .073±.005.
func (s *reader) figure(e entry) (value, deviation float64) {
	text := s.text(e)
	v, d, both := strings.Cut(text, "±")
	value, err := parseNumber(v)
	if both && err == nil {
		deviation, err = parseNumber(d)
	}
	if err != nil || deviation < 0 {
		s.fail(e.valueAt, "%s: %q is not a number, nor a mean and a standard deviation such as 0.073±0.005", e.key, text)
	}
	return value, deviation
}

// parseNumber reads a number as settings are read: without Go's underscores and hexadecimal forms.
func parseNumber(text string) (float64, error) {
	p := param.Param{Kind: param.KindFloat, Min: -math.MaxFloat64, Max: math.MaxFloat64}
	v, err := p.Parse(strings.TrimSpace(text))
	if err != nil {
		return 0, err
	}
	return v.(float64), nil
}

// duration reads a time such as 90s, 20m or 1h30m.
func (s *reader) duration(e entry) time.Duration {
	d, err := time.ParseDuration(s.text(e))
	if err != nil || d < leastBudget || d > mostBudget {
		s.fail(e.valueAt, "%s: %q is not a duration from 1s to %.0fh, such as 90s, 20m or 1h30m", e.key, s.text(e),
			mostBudget.Hours())
	}
	return d
}

// enhancement reads a label enhancement: its method, or a mapping.
func (s *reader) enhancement(e entry) *round.Enhance {
	x := &round.Enhance{Normalise: enhance.Softmax}
	check := func(e entry, key string) string {
		text := s.text(e)
		if err := spec.Set(&protocol.Spec{}, key, text); err != nil {
			s.fail(e.valueAt, "%v", err)
		}
		return text
	}
	if _, ok := yamltree.Scalar(e.value); ok {
		x.Method = check(e, "enhance")
	} else {
		before := len(s.mistakes)
		for _, e := range s.mapping(e.value, "a label enhancement", []string{"method", "normalise", "binarise"}) {
			switch e.key {
			case "method":
				x.Method = check(e, "enhance")
			case "normalise":
				x.Normalise = check(e, "normalise")
			case "binarise":
				x.Binarise, _ = units.ParseFloat(check(e, "binarise"))
			}
		}
		if x.Method == "" {
			s.lack(before, e.valueAt, "enhance: the key method is missing: give one of %s",
				strings.Join(enhance.Methods(), ", "))
		}
	}
	if !slices.Contains(enhance.Methods(), x.Method) {
		s.fail(e.valueAt, "enhance: want one of %s; without an enhancement, leave the key out",
			strings.Join(enhance.Methods(), ", "))
	}
	return x
}
