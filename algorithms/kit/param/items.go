package param

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Item is one of a list, such as an algorithm: a name, and settings in the order given.
type Item struct {
	Name string
	Set  []Pair
}

// Pair is a setting of an Item, as text.
type Pair struct{ Key, Value string }

// ItemsForm says what a list of items looks like.
const ItemsForm = "NAME,NAME,..., each optionally with settings: NAME:KEY=VALUE:KEY=VALUE"

// special are the characters for which a name, a key or a value stands in quotes.
const special = ",:=\"\\"

// FormatItems returns the one text of a list: a:x=1:y=2,b. Names, keys and values with other
// characters than the usual ones are quoted as in JSON.
func FormatItems(items []Item) string {
	var b strings.Builder
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quoted(item.Name))
		for _, p := range item.Set {
			b.WriteString(":" + quoted(p.Key) + "=" + quoted(p.Value))
		}
	}
	return b.String()
}

func quoted(word string) string {
	if word == "" || strings.ContainsAny(word, special) || strings.ContainsFunc(word, func(c rune) bool { return c <= ' ' || c >= 127 }) {
		return strconv.QuoteToASCII(word)
	}
	return word
}

// ParseItems reads what FormatItems writes; spaces may stand around names, keys and values. An
// error says what is wrong.
func ParseItems(text string) (items []Item, err error) {
	for first := true; first || text != ""; first = false {
		if !first {
			text = text[1:] // the comma
		}
		var item Item
		if item, text, err = parseItem(text); err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// parseItem reads an item up to the comma after it.
func parseItem(text string) (item Item, rest string, err error) {
	if item.Name, rest, err = word(text); err != nil {
		return item, "", err
	}
	for strings.HasPrefix(rest, ":") {
		var p Pair
		if p.Key, rest, err = word(rest[1:]); err != nil {
			return item, "", fmt.Errorf("after %s: %w", item.Name, err)
		}
		if !strings.HasPrefix(rest, "=") {
			return item, "", fmt.Errorf("%s: want KEY=VALUE after the colon, got %q", item.Name, p.Key)
		}
		if p.Value, rest, err = word(rest[1:]); err != nil {
			return item, "", fmt.Errorf("%s: %s: %w", item.Name, p.Key, err)
		}
		item.Set = append(item.Set, p)
	}
	if rest != "" && rest[0] != ',' {
		return item, "", fmt.Errorf("%s: want a comma or a colon before %.20q", item.Name, rest)
	}
	return item, rest, nil
}

var errNoWord = errors.New("a name, a key or a value is missing")

// word reads a name, a key or a value, in quotes or up to the next special character.
func word(text string) (w, rest string, err error) {
	text = strings.TrimLeft(text, " ")
	if strings.HasPrefix(text, `"`) {
		in, err := strconv.QuotedPrefix(text)
		if err != nil {
			return "", "", fmt.Errorf("the closing quote is missing after %.20q", text)
		}
		w, err = strconv.Unquote(in)
		return w, strings.TrimLeft(text[len(in):], " "), err
	}
	end := strings.IndexAny(text, special)
	if end < 0 {
		end = len(text)
	}
	if w = strings.TrimRight(text[:end], " "); w == "" {
		return "", "", errNoWord
	}
	return w, text[end:], nil
}
