package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const loginFile = `[login]
issuer = 'https://accounts.example.com/tenant'
client_id = 'yard'
roles_claim = 'roles'
viewers = ['staff']
operators = ['developers', 'jo@example.com']
admins = ['platform']
`

func TestALoginThroughAProvider(t *testing.T) {
	path := tokenFile(t, "of-the-file\n", 0o600)
	got, err := load(t, loginFile+"client_secret_file = '"+path+"'", nil, []string{"--listen=:80"})
	if err != nil {
		t.Fatal(err)
	}
	l := got.Login
	if l.Issuer != "https://accounts.example.com/tenant" || l.ClientID != "yard" || l.ClientSecret.Reveal() != "of-the-file" || l.RolesClaim != "roles" ||
		!slices.Equal(l.Roles.Viewers, []string{"staff"}) || !slices.Equal(l.Roles.Operators, []string{"developers", "jo@example.com"}) ||
		!slices.Equal(l.Roles.Admins, []string{"platform"}) || len(got.Warnings) > 0 || !l.IsSetUp() || l.HasProxyLogin() {
		t.Errorf("Load = %+v, warnings %q", l, got.Warnings)
	}
	got, err = load(t, loginFile+"client_secret_file = '"+path+"'", []string{"SWITCHYARD_LOGIN_CLIENT_SECRET=canary"}, nil)
	if err != nil || got.Login.ClientSecret.Reveal() != "canary" || strings.Contains(fmt.Sprintf("%+v %#v", got, got.Login), "canary") {
		t.Errorf("of the variable: %+v, %v", got.Login, err)
	}
}

func TestAClientNeedsNoSecret(t *testing.T) {
	if got, err := load(t, loginFile, nil, nil); err != nil || got.Login.ClientSecret != "" {
		t.Errorf("Load = %+v, %v", got, err)
	}
}

func TestATrustedProxyThatSaysWhoAsksIsALogin(t *testing.T) {
	const file = "[login]\nadmins = ['ops']\nuser_header = 'x-forwarded-user'\ngroups_header = 'X-Groups'\ntrusted_proxies = ['10.0.0.0/8']"
	got, err := load(t, file, nil, []string{"--listen=:80"})
	if err != nil || got.Login.UserHeader != "X-Forwarded-User" || got.Login.GroupsHeader != "X-Groups" || !got.Login.IsSetUp() || len(got.Warnings) > 0 {
		t.Errorf("Load = %+v, %v", got, err)
	}
}

func TestALoginThatLetsNobodyInWarns(t *testing.T) {
	for file, says := range map[string]string{
		"[login]\nissuer = 'https://a'\nclient_id = 'b'":                      "nobody can log in",
		"[login]\nadmins = ['a']\nuser_header = 'X-User'":                     "/switchyard.toml:3: login.user_header: has no effect without login.trusted_proxies",
		"[login]\ngroups_header = 'X-Groups'\ntrusted_proxies = ['10.0.0.1']": "/switchyard.toml:2: login.groups_header: has no effect without login.user_header",
	} {
		got, err := load(t, file, nil, nil)
		if err != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], says) {
			t.Errorf("%q: %+v, %v; want the warning %q", file, got, err, says)
		}
	}
}
