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
	URL       string // from which it refreshes itself, without a version; "" if it no longer changes
	Title     string // of the tab, "" for the page's title
	Props     any    // everything that Content depends on: equal Props make equal Content
	Content   templ.Component
}

// newPart returns a part whose content depends only on props.
func newPart[P any](id, class, url string, props P, content func(P) templ.Component) Part {
	return Part{ID: id, Class: class, URL: url, Props: props, Content: content(props)}
}

// SameProps reports whether parts made from these props are the same.
func SameProps(a, b any) bool {
	if known, ok := a.(interface{ isSame(other any) bool }); ok {
		return known.isSame(b)
	}
	return reflect.DeepEqual(a, b)
}

// address returns the address that answers whether the part has changed since this version.
func (p Part) address(version string) string {
	separator := "?"
	if strings.Contains(p.URL, "?") {
		separator = "&"
	}
	return p.URL + separator + "v=" + url.QueryEscape(version)
}
