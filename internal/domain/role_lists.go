package domain

import (
	"slices"
	"strings"
)

// RoleLists assign roles to groups (values of a claim or header) and e-mail addresses.
type RoleLists struct{ Viewers, Operators, Admins []string }

// Of returns the highest role of a user in these groups with this e-mail address, "" for none. email must be "" unless
// it has been verified.
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

// Empty reports whether the lists give nobody a role.
func (l RoleLists) Empty() bool { return len(l.Viewers)+len(l.Operators)+len(l.Admins) == 0 }

// lists reports whether list contains one of the groups, compared exactly, or the e-mail address, ignoring the case of
// ASCII letters only: some other letters have an ASCII letter as their lower case. An entry with @ is an address: a
// group spelt like it gets nothing.
func lists(list, groups []string, email string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		if strings.Contains(entry, "@") {
			return lowerASCII(entry) == lowerASCII(email)
		}
		return slices.Contains(groups, entry)
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
