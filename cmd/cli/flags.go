package cli

import (
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// mayBeEmpty is the tag of a flag or an argument that may be empty.
const mayBeEmpty = "empty"

// checkGiven refuses flags that are given twice, because one of the values would be lost. It refuses empty values,
// which would mean the default. Flags that are lists may be repeated.
func checkGiven(line *kong.Context) error {
	seen := make(map[*kong.Flag]bool)
	for _, p := range line.Path {
		if p.Positional != nil && !p.Positional.Tag.Has(mayBeEmpty) && isEmpty(line.Value(p).Interface()) {
			return Usagef("the argument <%s> is empty", p.Positional.Name)
		}
		f := p.Flag
		if f == nil || p.Resolved {
			continue
		}
		if seen[f] && !f.IsCumulative() {
			return Usagef("%s is given twice; give it once", errtext.Option(f.Name, ""))
		}
		seen[f] = true
		if isEmpty(line.FlagValue(f)) && !f.Tag.Has(mayBeEmpty) {
			return Usagef("%s has an empty value; give a value, or leave it out", errtext.Option(f.Name, ""))
		}
	}
	return nil
}

// negative matches a word that begins as a negative number. No flag begins so.
var negative = regexp.MustCompile(`^-\.?[0-9]`)

// withNegatives joins each flag of a command line with a negative number that follows it, as in --missing=-1. kong
// reads a word that begins with a hyphen as a flag, even after a flag that needs a value.
func withNegatives(args []string) (joined []string) {
	for i, arg := range args {
		last := len(joined) - 1
		switch {
		case arg == "--":
			return append(joined, args[i:]...)
		case last >= 0 && negative.MatchString(arg) && joined[last] == "-o":
			joined[last] = "--output=" + arg
		case last >= 0 && negative.MatchString(arg) && strings.HasPrefix(joined[last], "--") &&
			!strings.Contains(joined[last], "="):
			joined[last] += "=" + arg
		default:
			joined = append(joined, arg)
		}
	}
	return joined
}

// isEmpty reports whether a value of a flag is an empty text, or a list of empty texts.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case string:
		return v == ""
	case []string:
		return strings.TrimSpace(strings.Join(v, "")) == ""
	}
	return false
}

// givenIn returns the names of the flags that are on a command line, without variables and the file of --config.
func givenIn(line *kong.Context) map[string]bool {
	given := make(map[string]bool)
	for _, p := range line.Path {
		if p.Flag != nil && !p.Resolved {
			given[p.Flag.Name] = true
		}
	}
	return given
}

// suggested matches the end of an error about an unknown flag or word.
var suggested = regexp.MustCompile(
	`^(unexpected argument|unknown flag) (\S+), did you mean (?:one of )?((?:"[^"]+"(?:, )?)+)\?$`)

// nearOnly removes the suggestions of an error that are not similar to the word. A suggestion that begins with the word
// is similar, if the word has three letters.
func nearOnly(err error) error {
	parts := suggested.FindStringSubmatch(err.Error())
	if parts == nil {
		return err
	}
	word, near := parts[2], []string{}
	for _, s := range strings.Split(parts[3], ", ") {
		name, plain := strings.Trim(s, `"`), strings.TrimLeft(word, "-")
		if param.Near(plain, strings.TrimLeft(name, "-")) || len(plain) >= 3 && strings.HasPrefix(name, word) {
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
	return Reworded(err, text)
}

// FlagText returns a flag, such as --data, as a place of a text.
func FlagText(flag string) errtext.Text { return errtext.Option(strings.TrimPrefix(flag, "--"), "") }

// WrongOption is the error about the value of a flag. The text of err begins with the name of the flag.
func WrongOption(err error) error {
	name, rest, _ := strings.Cut(string(errtext.Within(err.Error(), err)), " ")
	return Usagef("%s %s", errtext.Option(name, ""), errtext.Text(rest))
}

// wrongLine is an error of kong about a command line. If it begins with a flag, the flag is a place.
func wrongLine(err error) error {
	text := nearOnly(err).Error()
	name, ok := strings.CutPrefix(text, "--")
	end := strings.IndexFunc(name, func(r rune) bool { return r != '-' && !unicode.IsLower(r) })
	if !ok || end <= 0 {
		return errtext.Errorf(errtext.UnknownOption, "%w", nearOnly(err))
	}
	rest := name[end:]
	if strings.HasPrefix(rest, " must be one of ") {
		rest = strings.Replace(strings.ReplaceAll(rest, `","`, `", "`), `"", `, "", 1) // an empty value is no choice
	}
	return errtext.Errorf(errtext.WrongOption, "%s%s", errtext.Option(name[:end], ""), rest)
}

// decimalNumbers has kong read numbers as decimal numbers. Without it, kong reads 010 as 8, and 1_0 as 10.
func decimalNumbers() kong.Option {
	return kong.OptionFunc(func(k *kong.Kong) error {
		for _, kind := range []reflect.Kind{
			reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
			reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64,
		} {
			if err := kong.KindMapper(kind, kong.MapperFunc(decodeNumber)).Apply(k); err != nil {
				return err
			}
		}
		return nil
	})
}

// decodeNumber implements kong.MapperFunc.
func decodeNumber(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("number")
	if err != nil {
		return err
	}
	text, bits := fmt.Sprint(token.Value), target.Type().Bits()
	switch {
	case target.CanInt():
		v, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			return fmt.Errorf("want a whole number that fits in %d bits, got %q", bits, text)
		}
		target.SetInt(v)
	case target.CanUint():
		v, err := strconv.ParseUint(text, 10, bits)
		if err != nil {
			return fmt.Errorf("want a whole number of at least 0 that fits in %d bits, got %q", bits, text)
		}
		target.SetUint(v)
	default:
		v, err := units.ParseFloat(text)
		if err != nil {
			return fmt.Errorf("want a decimal number, got %q", text)
		}
		target.SetFloat(v)
	}
	return nil
}

// printer is a command with more output formats than text and JSON.
type printer interface{ Outputs() []string }

// OutputsOf returns the output formats of a command.
func OutputsOf(n *kong.Node) []string {
	all := []string{Text, JSON}
	if n == nil || !n.Target.IsValid() || !n.Target.CanAddr() {
		return all
	}
	if p, ok := n.Target.Addr().Interface().(printer); ok {
		all = append(all, p.Outputs()...)
	}
	return all
}

// checkOutput refuses an output format that a command does not have.
func checkOutput(n *kong.Node, output string) error {
	all := OutputsOf(n)
	if n == nil || slices.Contains(all, output) {
		return nil
	}
	last := len(all) - 1
	return Usagef("-o %s: coppice %s prints %s or %s", output, strings.Join(CommandPath(n), " "),
		strings.Join(all[:last], ", "), all[last])
}

// ThreadsFlag bounds the threads that a command computes on.
type ThreadsFlag struct {
	Threads int `placeholder:"N" help:"Number of threads to compute on, which does not change the results (default: one for each processor)."`
}

// maxThreads is the maximum of --threads.
const maxThreads = 1024

// Check refuses a number of threads that is too large.
func (t *ThreadsFlag) Check() error {
	if t.Threads < 0 || t.Threads > maxThreads {
		return Usagef("{threads=%d}: want 1 to %d, or 0 for one thread per processor", t.Threads, maxThreads)
	}
	return nil
}

// Number returns the number of threads.
func (t *ThreadsFlag) Number() int {
	if t.Threads == 0 {
		return runtime.GOMAXPROCS(0)
	}
	return t.Threads
}

// CommandPath returns the names of the commands that lead to a node.
func CommandPath(n *kong.Node) (names []string) {
	for ; n != nil && n.Parent != nil; n = n.Parent {
		names = append([]string{n.Name}, names...)
	}
	return names
}
