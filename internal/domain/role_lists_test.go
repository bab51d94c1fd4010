package domain_test

import (
	"testing"

	"switchyard/internal/domain"
)

func TestTheHighestRoleThatAListGivesCounts(t *testing.T) {
	lists := domain.RoleLists{
		Viewers:   []string{"staff", "boss@example.com"},
		Operators: []string{"staff", "developers", "Jo@Example.com"},
		Admins:    []string{"boss@example.com", "kit@example.com", "root"},
	}
	for _, c := range []struct {
		groups []string
		email  string
		want   domain.Role
	}{
		{nil, "", ""},
		{[]string{"guests"}, "guest@example.com", ""},
		{[]string{"staff"}, "", domain.RoleOperator},
		{[]string{"Staff"}, "", ""},
		{[]string{"developers", "guests"}, "", domain.RoleOperator},
		{[]string{"developers"}, "boss@example.com", domain.RoleAdmin},
		{nil, "BOSS@example.COM", domain.RoleAdmin},
		{nil, "jo@example.com", domain.RoleOperator},
		{nil, "\u212Ait@example.com", ""}, // the Kelvin sign, whose lower case is k
		{nil, "root", ""},                 // a name is not an address
		{[]string{""}, "", ""},
		{[]string{"boss@example.com"}, "", ""}, // nor is a group one
		{[]string{"boss@example.com"}, "guest@example.com", ""},
	} {
		if got := lists.Of(c.groups, c.email); got != c.want {
			t.Errorf("%q, %q: %q, want %q", c.groups, c.email, got, c.want)
		}
	}
	if lists.Empty() || !(domain.RoleLists{}).Empty() {
		t.Error("Empty does not say whether anybody has a role")
	}
}
