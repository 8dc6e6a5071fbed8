package lint

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// longest is how many words a sentence for users may have.
const longest = 25

// awkward are phrases that a reader has to read twice.
var awkward = regexp.MustCompile(
	`(?i)\b(of which|of whom|that of|those of|those that|one that|whoever|beside|as far as|is gone|lest|no more|not to be had|anew)\b`)

var (
	fenced   = regexp.MustCompile("(?s)```.*?```")
	inCode   = regexp.MustCompile("`[^`]*`")
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	bullet   = regexp.MustCompile(`^\s*(-|\d+\.)\s`)
	ending   = regexp.MustCompile(`[.?!:]\s+`)
	// names is a list of names alone, which may be of any length.
	names = regexp.MustCompile(`^\s*(\S+, )+\S+( (and|or) \S+)?\s*$`)
)

// paragraphs divides a page into texts that no sentence leaves: paragraphs, items of lists and cells of tables.
func paragraphs(page string) []string {
	var all []string
	open := false // true if the last text may go on in the next line
	for line := range strings.Lines(fenced.ReplaceAllString(page, "")) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "|"):
			all, open = append(all, strings.Split(strings.Trim(line, "|"), "|")...), false
		case line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "<!--"):
			open = false
		case bullet.MatchString(line) || !open:
			all, open = append(all, bullet.ReplaceAllString(line, "")), true
		default:
			all[len(all)-1] += " " + line
		}
	}
	return all
}

// sentences divides a paragraph; a colon ends a sentence too. Code counts as one word.
func sentences(paragraph string) []string {
	text := inCode.ReplaceAllString(linkText.ReplaceAllString(paragraph, "$1"), "CODE")
	return strings.Split(ending.ReplaceAllString(text, "$0\x00"), "\x00")
}

// prose counts what is hard to read in paragraphs.
func prose(paragraphs []string) (long, hard []string) {
	for _, p := range paragraphs {
		for _, s := range sentences(p) {
			if n := len(strings.Fields(s)); n > longest && !names.MatchString(s) {
				long = append(long, s)
			}
			if awkward.MatchString(s) {
				hard = append(hard, s)
			}
		}
	}
	return long, hard
}

// TestProse: sentences of pages for users are short and plain.
func TestProse(t *testing.T) {
	all := append(pages(t), "ARCHITECTURE.md", "CONTRIBUTING.md", "BENCHMARKS.md", "docs/tutorial.md",
		"docs/dev/decoders.md")
	for _, page := range all {
		long, hard := prose(paragraphs(read(t, filepath.ToSlash(page))))
		if len(long) > 0 {
			t.Errorf("%s has %d sentences above %d words: %q", page, len(long), longest, long[:min(5, len(long))])
		}
		if len(hard) > 0 {
			t.Errorf("%s has %d awkward phrases: %q", page, len(hard), hard[:min(5, len(hard))])
		}
	}
}

// selfReference matches an opening that tells of the page instead of its subject.
var selfReference = regexp.MustCompile(`(?i)^(this|the) page\b`)

// TestOpenings: a page opens with what its reader learns or does.
func TestOpenings(t *testing.T) {
	n := 0
	for _, page := range documents(t) {
		n++
		if all := paragraphs(read(t, page)); len(all) > 0 && selfReference.MatchString(all[0]) {
			t.Errorf("%s opens with %q: say what the reader learns or does", page, sentences(all[0])[0])
		}
	}
	if n < 40 {
		t.Fatalf("only %d pages: this looks at the wrong folder", n)
	}
}

// TestSentences: what counts as a sentence.
func TestSentences(t *testing.T) {
	page := "# A title of no account\n\nOne `a b c` word,\ntwo lines. A [link to it](x.md).\n- an item\n\n| cell one | " +
		"cell two |\n```\nnot this\n```\n"
	var got []string
	for _, p := range paragraphs(page) {
		for _, s := range sentences(p) {
			got = append(got, strings.TrimSpace(s))
		}
	}
	if want := "One CODE word, two lines./A link to it./an item/cell one/cell two"; strings.Join(got, "/") != want {
		t.Errorf("%q, want %q", strings.Join(got, "/"), want)
	}
}

// TestProseOfTexts: sentences of help and errors are short and plain.
func TestProseOfTexts(t *testing.T) {
	var long, hard []string
	for _, s := range public(t) {
		for _, x := range s.texts() {
			if !strings.Contains(x.value, " ") || strings.Count(x.value, "\n") > 3 {
				continue
			}
			l, h := prose([]string{x.value})
			for _, s := range l {
				long = append(long, x.where+": "+s)
			}
			for _, s := range h {
				hard = append(hard, x.where+": "+s)
			}
		}
	}
	if len(long) > 0 {
		t.Errorf("%d sentences above %d words in help and errors:\n%s", len(long), longest, strings.Join(long, "\n"))
	}
	if len(hard) > 0 {
		t.Errorf("%d awkward phrases in help and errors:\n%s", len(hard), strings.Join(hard, "\n"))
	}
}
