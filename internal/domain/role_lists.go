package domain

import (
	"slices"
	"strings"
)

// RoleLists say who has which role: each list holds groups (values of a claim or a header) and e-mail addresses.
type RoleLists struct{ Viewers, Operators, Admins []string }

// Of returns the highest role of somebody who is in these groups and has this e-mail address, "" for none. An address that
// nobody vouches for must be left out.
func (l RoleLists) Of(groups []string, email string) Role {
	switch {
	case lists(l.Admins, groups, email):
		return RoleAdmin
	case lists(l.Operators, groups, email):
		return RoleOperator
	case lists(l.Viewers, groups, email):
		return RoleViewer
	}
	return ""
}

// Empty reports whether nobody has a role.
func (l RoleLists) Empty() bool { return len(l.Viewers)+len(l.Operators)+len(l.Admins) == 0 }

// lists reports whether a list has one of the groups, letter by letter, or the e-mail address, in any case of its ASCII letters:
// other scripts have letters whose lower case is an ASCII one.
func lists(list, groups []string, email string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		isEmail := strings.Contains(email, "@") && lowerASCII(entry) == lowerASCII(email)
		return isEmail || slices.Contains(groups, entry)
	})
}

func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}
