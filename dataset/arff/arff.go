// Package arff reads ARFF files of Weka, Mulan and MEKA: dense and sparse rows of numbers, nominal values and texts.
package arff

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrFormat is wrapped by errors about what no ARFF file has.
var ErrFormat = errors.New("the file is damaged or has another format")

// Error is an error about a line of a file.
type Error struct {
	Line   int // from 1
	Reason string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// Unwrap implements errors.Unwrap.
func (e *Error) Unwrap() error { return ErrFormat }

// Kind is what the values of an attribute are.
type Kind uint8

// The kinds of attributes.
const (
	Numeric Kind = iota
	Nominal
	Text
	Date
	Relational
)

// Attribute is a column of a file.
type Attribute struct {
	Name   string
	Kind   Kind
	Levels []string // of a Nominal

	known map[string]bool // its levels
}

// Bounds of files.
const (
	maxAttributes = 1 << 20
	maxLine       = 32 << 20 // bytes
)

// Reader reads the rows of a file in order.
type Reader struct {
	Relation   string
	Attributes []Attribute

	in     *bufio.Reader
	line   int
	blank  []string // the values that a sparse row leaves out
	record []string
	given  []int // by attribute: the line of the last sparse row that has a value of it
}

// NewReader reads the head of a file, up to the line @data.
func NewReader(in *bufio.Reader) (*Reader, error) {
	r := &Reader{in: in}
	for {
		text, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil, r.errorf("the file has no line @data")
		}
		if err != nil {
			return nil, err
		}
		word, rest := cutWord(text)
		switch strings.ToLower(word) {
		case "@relation":
			if r.Relation, _, err = token(rest, ""); err != nil {
				return nil, r.errorf("the relation: %v", err)
			}
		case "@attribute":
			a, err := attribute(rest)
			if err != nil {
				return nil, r.errorf("%v", err)
			}
			if r.Attributes = append(r.Attributes, *a); len(r.Attributes) > maxAttributes {
				return nil, r.errorf("the file has more than %d attributes", maxAttributes)
			}
		case "@data":
			if len(r.Attributes) == 0 {
				return nil, r.errorf("the file has no attributes before @data")
			}
			for i := range r.Attributes {
				r.blank = append(r.blank, r.Attributes[i].leftOut())
			}
			r.record, r.given = make([]string, len(r.blank)), make([]int, len(r.blank))
			return r, nil
		default:
			return nil, r.errorf("found %.40q, want @relation, @attribute or @data", text)
		}
	}
}

// leftOut is the value that a sparse row does not name: 0, or the first level. A text that is left out is missing.
func (a *Attribute) leftOut() string {
	switch {
	case a.Kind == Numeric:
		return "0"
	case a.Kind == Nominal && len(a.Levels) > 0:
		return a.Levels[0]
	}
	return "?"
}

func (r *Reader) errorf(format string, args ...any) error {
	return &Error{r.line, fmt.Sprintf(format, args...)}
}

// next reads the next line that is neither blank nor a comment, without the blanks at its ends.
func (r *Reader) next() (string, error) {
	for {
		var whole []byte
		part, err := r.in.ReadSlice('\n')
		r.line++
		for errors.Is(err, bufio.ErrBufferFull) {
			if whole = append(whole, part...); len(whole) > maxLine {
				return "", r.errorf("the line has more than %d bytes", maxLine)
			}
			part, err = r.in.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		if len(whole)+len(part) == 0 && err != nil {
			return "", io.EOF
		}
		text := strings.TrimSpace(string(append(whole, part...)))
		if text != "" && text[0] != '%' {
			return text, nil
		}
	}
}

// cutWord cuts the first word off a line.
func cutWord(text string) (word, rest string) {
	if i := strings.IndexAny(text, " \t"); i >= 0 {
		return text[:i], strings.TrimSpace(text[i:])
	}
	return text, ""
}

// attribute reads the name and the type of an attribute.
func attribute(text string) (*Attribute, error) {
	name, rest, err := token(text, "{")
	if err != nil {
		return nil, fmt.Errorf("the name of an attribute: %w", err)
	}
	if name == "" {
		return nil, errors.New("an attribute has no name")
	}
	a := &Attribute{Name: name}
	if strings.HasPrefix(rest, "{") {
		a.Kind, a.known = Nominal, map[string]bool{}
		for rest = strings.TrimSpace(rest[1:]); ; {
			if rest == "" {
				return nil, fmt.Errorf("the levels of attribute %.100q do not end in }", name)
			}
			if rest[0] == '}' {
				break
			}
			level, after, err := token(rest, ",}")
			if err != nil {
				return nil, fmt.Errorf("the levels of attribute %.100q: %w", name, err)
			}
			a.Levels, a.known[level] = append(a.Levels, level), true
			if rest = after; strings.HasPrefix(rest, ",") {
				rest = strings.TrimSpace(rest[1:])
			} else if level == "" && !strings.HasPrefix(rest, "}") {
				return nil, fmt.Errorf("the levels of attribute %.100q cannot be read at %.40q", name, rest)
			}
		}
		return a, nil
	}
	kind, _ := cutWord(rest)
	switch strings.ToLower(kind) {
	case "numeric", "real", "integer":
		a.Kind = Numeric
	case "string":
		a.Kind = Text
	case "date":
		a.Kind = Date
	case "relational":
		a.Kind = Relational
	default:
		return nil, fmt.Errorf("attribute %.100q has the type %.40q, want numeric, real, integer, string, date "+
			"or levels in {}", name, kind)
	}
	return a, nil
}

// token reads a text at the beginning of text, which ends at a blank or at one of stops unless it is quoted. It
// returns what follows without blanks.
func token(text, stops string) (value, rest string, err error) {
	if text == "" || text[0] != '\'' && text[0] != '"' {
		i := strings.IndexAny(text, stops+" \t")
		if i < 0 {
			return text, "", nil
		}
		return text[:i], strings.TrimLeft(text[i:], " \t"), nil
	}
	quote := text[0]
	end := -1
	escaped := false
	for i := 1; i < len(text); i++ {
		if text[i] == '\\' {
			escaped = true
			i++
		} else if text[i] == quote {
			end = i
			break
		}
	}
	if end < 0 {
		return "", "", fmt.Errorf("%.40s has no closing quote", text)
	}
	if value = text[1:end]; escaped {
		value = unescape(value)
	}
	return value, strings.TrimLeft(text[end+1:], " \t"), nil
}

// unescape replaces what begins with a backslash.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'u':
			if i+4 < len(s) {
				if v, err := strconv.ParseUint(s[i+1:i+5], 16, 16); err == nil {
					b.WriteString(string(utf8.AppendRune(nil, rune(v))))
					i += 4
					continue
				}
			}
			b.WriteByte('u')
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// Next returns the values of the next row, which are valid until the next call, and the line that it is in. A missing
// value is "?". After the last row it returns io.EOF.
func (r *Reader) Next() (record []string, line int, err error) {
	text, err := r.next()
	if err != nil {
		return nil, r.line, err
	}
	if text[0] == '{' {
		err = r.sparse(text[1:])
	} else {
		err = r.dense(text)
	}
	return r.record, r.line, err
}

// dense reads a row with all values.
func (r *Reader) dense(text string) error {
	stops := ","
	if !strings.Contains(text, ",") {
		stops = ""
	}
	for i, rest := 0, text; ; i++ {
		if strings.HasPrefix(rest, "{") {
			return r.errorf("the row ends in a weight of the sample, %.40q, which cannot be read: remove the weights", rest)
		}
		value, after, err := value(rest, stops)
		if err != nil {
			return r.errorf("%v", err)
		}
		if i < len(r.record) {
			if err := r.set(i, value); err != nil {
				return err
			}
		}
		if after == "" {
			if i+1 != len(r.record) {
				return r.errorf("found %d values, want %d", i+1, len(r.record))
			}
			return nil
		}
		if rest = after; stops != "" {
			rest = strings.TrimLeft(after[1:], " \t")
		}
		if rest == "" { // a comma at the end
			return r.errorf("the row ends in a comma")
		}
	}
}

// value reads a value of a row: up to a comma, or, without stops, up to a blank. What follows begins with the comma.
func value(text, stops string) (value, rest string, err error) {
	if quoted := text != "" && (text[0] == '\'' || text[0] == '"'); quoted || stops == "" {
		value, rest, err = token(text, stops)
		if err == nil && stops != "" && rest != "" && rest[0] != ',' {
			err = fmt.Errorf("%.40q follows a quoted value, want a comma", rest)
		}
		return value, rest, err
	}
	i := strings.IndexByte(text, ',')
	if i < 0 {
		return text, "", nil
	}
	return strings.TrimRight(text[:i], " \t"), text[i:], nil
}

// set sets a value, which must be a level of a nominal attribute.
func (r *Reader) set(i int, value string) error {
	a := &r.Attributes[i]
	if a.Kind == Nominal && value != "?" && value != "" && !a.known[value] {
		return r.errorf("%.40q is no level of attribute %.100q", value, a.Name)
	}
	r.record[i] = value
	return nil
}

// sparse reads a row that names the attributes that are not 0; text follows {.
func (r *Reader) sparse(text string) error {
	copy(r.record, r.blank)
	for rest := strings.TrimLeft(text, " \t"); ; {
		switch {
		case rest == "":
			return r.errorf("the row does not end in }")
		case rest[0] == '}':
			if rest = strings.Trim(rest[1:], ", \t"); rest != "" {
				return r.errorf("%.40q follows the row; weights of samples cannot be read: remove them", rest)
			}
			return nil
		}
		index, after, err := token(rest, ",}")
		i, failed := strconv.Atoi(index)
		if err != nil || failed != nil || i < 0 || i >= len(r.record) {
			return r.errorf("found %.40q, want the number of an attribute, from 0 to %d, and a value", index, len(r.record)-1)
		}
		if r.given[i] == r.line {
			return r.errorf("attribute %d has two values", i)
		}
		r.given[i] = r.line
		text, after, err := token(after, ",}")
		if err != nil {
			return r.errorf("%v", err)
		}
		if text == "" {
			return r.errorf("attribute %d has no value", i)
		}
		if err := r.set(i, text); err != nil {
			return err
		}
		if rest = after; strings.HasPrefix(rest, ",") {
			rest = strings.TrimLeft(rest[1:], " \t")
		} else if rest != "" && rest[0] != '}' {
			return r.errorf("found %.40q, want a comma or }", rest)
		}
	}
}

// classes is how MEKA says in the name of a relation how many of the first attributes are labels; of the last ones if
// the number is negative.
var classes = regexp.MustCompile(`(?:^|[\s:])-[Cc]\s+(-?\d{1,7})(?:\s|$)`)

// Labels returns the attributes that MEKA's relation says are labels; nil: it says nothing.
func (r *Reader) Labels() ([]int, error) {
	found := classes.FindStringSubmatch(r.Relation)
	if found == nil {
		return nil, nil
	}
	n, err := strconv.Atoi(found[1])
	from, to := 0, n
	if n < 0 {
		from, to = len(r.Attributes)+n, len(r.Attributes)
	}
	if err != nil || n == 0 || from < 0 || to > len(r.Attributes) {
		return nil, &Error{1, fmt.Sprintf("the relation says -C %s, but the file has %d attributes", found[1],
			len(r.Attributes))}
	}
	var all []int
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all, nil
}

// ReadLabels reads a list of labels of Mulan: an XML file with an element <label name="..."> for each. Labels may be in
// labels. in is not read further than maxLine bytes.
func ReadLabels(in io.Reader, decode func(charset string, in io.Reader) (io.Reader, error)) (names []string,
	err error) {
	bounded := &io.LimitedReader{R: in, N: maxLine}
	d := xml.NewDecoder(bounded)
	d.CharsetReader = decode
	depth := 0
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if bounded.N <= 0 {
			return nil, fmt.Errorf("the list of labels has more than %d bytes: %w", maxLine, ErrFormat)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, ErrFormat)
		}
		switch t := t.(type) {
		case xml.EndElement:
			depth--
		case xml.StartElement:
			want := "label"
			if depth == 0 {
				want = "labels"
			}
			if t.Name.Local != want {
				return nil, fmt.Errorf("line %d: found <%.40s>, want <%s>: %w", lineOf(d), t.Name.Local, want, ErrFormat)
			}
			if depth++; depth > 100 || len(names) > maxAttributes {
				return nil, fmt.Errorf("line %d: too many labels, or labels too deep in others: %w", lineOf(d), ErrFormat)
			}
			if want == "labels" {
				continue
			}
			i := slices.IndexFunc(t.Attr, func(a xml.Attr) bool { return a.Name.Local == "name" })
			if i < 0 {
				return nil, fmt.Errorf("line %d: a label has no name: %w", lineOf(d), ErrFormat)
			}
			names = append(names, t.Attr[i].Value)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf(`the list has no <label name="...">: %w`, ErrFormat)
	}
	return names, nil
}

func lineOf(d *xml.Decoder) int {
	line, _ := d.InputPos()
	return line
}
