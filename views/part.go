package views

import (
	"net/url"
	"reflect"
	"strings"

	"github.com/a-h/templ"
)

// Part is the part of a page that refreshes itself: an element around content that depends on Props alone.
type Part struct {
	ID, Class string
	URL       string // that it refreshes itself from, without a version; "" when it no longer changes
	Title     string // of the tab, "" for the one that its page has
	Props     any    // all that Content is made of: the same Props are the same Content
	Content   templ.Component
}

// newPart makes a part whose content is made of props and nothing else.
func newPart[P any](id, class, url string, props P, content func(P) templ.Component) Part {
	return Part{ID: id, Class: class, URL: url, Props: props, Content: content(props)}
}

// SameProps reports whether parts that are made of these are the same.
func SameProps(a, b any) bool {
	if known, ok := a.(interface{ isSame(other any) bool }); ok {
		return known.isSame(b)
	}
	return reflect.DeepEqual(a, b)
}

// address is where the part asks whether it has changed since it had this version.
func (p Part) address(version string) string {
	separator := "?"
	if strings.Contains(p.URL, "?") {
		separator = "&"
	}
	return p.URL + separator + "v=" + url.QueryEscape(version)
}
