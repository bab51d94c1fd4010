package config_test

import (
	"errors"
	"strings"
	"testing"

	"switchyard/internal/config"
)

func TestAMistakeInTheFileNamesFileLineAndKey(t *testing.T) {
	for _, c := range []struct {
		file string
		line string
		says string
	}{
		{"[gateway]\nlisten = 3000", "2", "gateway.listen: must be a string"},
		{"[gateway]\nlisten = 'here'", "2", `gateway.listen: "here" is not HOST:PORT`},
		{"[gateway]\nlisten = 'localhost:65536'", "2", "gateway.listen: the port"},
		{"[gateway]\nlisten = 'localhost:http'", "2", "gateway.listen: the port"},
		{"[gateway]\nlisten = 'a b:1'", "2", "gateway.listen: "},
		{"[gateway]\n\n\npoll_interval = 2", "4", "gateway.poll_interval: must be a string"},
		{"[gateway]\npoll_interval = '2'", "2", `gateway.poll_interval: "2" is not a duration`},
		{"[gateway]\npoll_interval = '-2s'", "2", "gateway.poll_interval: must be at least"},
		{"[gateway]\npoll_interval = '0s'", "2", "gateway.poll_interval: must be at least"},
		{"[gateway]\ndata = ''", "2", "gateway.data: must not be empty"},
		{"[gateway]\nallow_hosts = 'a'", "2", "gateway.allow_hosts: must be an array of strings"},
		{"[gateway]\nallow_hosts = [\n'a',\n1]", "2", "gateway.allow_hosts: must be an array of strings"},
		{"[gateway]\nallow_hosts = ['http://a']", "2", "gateway.allow_hosts: "},
		{"[gateway]\nallow_hosts = ['a:80']", "2", "gateway.allow_hosts: "},
		{"[gateway]\nallow_hosts = ['*.a']", "2", "gateway.allow_hosts: "},
		{"[gateway]\nallow_hosts = ['']", "2", "gateway.allow_hosts: "},
		{"[gateway]\nlog_format = 'xml'", "2", "gateway.log_format: must be one of text, json"},
		{"[gateway]\nlistn = 'a'", "2", "gateway.listn: is not a known key; did you mean gateway.listen?"},
		{"[gateway]\nconfig = 'a'", "2", "gateway.config: is not a known key"},
		{"listen = 'localhost:1'", "1", "listen: is not a known key; did you mean gateway.listen?"},
		{"'gateway.listen' = 'localhost:1'", "1", `"gateway.listen": is not a known key`},
		{"# x\n[gatway]", "2", "gatway: is not a known key; did you mean gateway?"},
		{"[gateway.listen]", "1", "gateway.listen: must be a value"},
		{"[gateway]\nlisten = {a = 1}", "2", "gateway.listen: must be a value"},
		{"[gateway]\nallow_hosts = [{a = 1}]", "2", "gateway.allow_hosts: must be a value"},
		{"[[gateway]]", "1", "gateway: must be written [gateway]"},
		{"gateway = 1", "1", "gateway: must be a table"},
		{"[sign_in]\nauthorize_url = 'ftp://a'", "2", "sign_in.authorize_url: must be an absolute http"},
		{"[sign_in]\ntoken_url = 'https://a:b@c/'", "2", "sign_in.token_url: must not contain"},
		{"[sign_in]\ntoken_url = '/token'", "2", "sign_in.token_url: must be an absolute http"},
		{"[sign_in]\nproduct = 'a b'", "2", "sign_in.product: must not contain spaces"},
		{"[gateway]\nallow_unauthenticated = 'true'", "2", "gateway.allow_unauthenticated: must be true or false"},
		{"[gateway]\nlisten = true", "2", "gateway.listen: must be a string"},
		{"[sign_in]\ntoken_format = 'xml'", "2", "sign_in.token_format: must be one of json, form"},
		{"[sign_in]\nscopes = 'openid email'", "2", "sign_in.scopes: must be an array of strings"},
		{"[sign_in]\nscopes = ['openid email']", "2", `sign_in.scopes: "openid email": must not contain spaces`},
		{"[sign_in]\nscopes = []", "2", "sign_in.scopes: must not be empty"},
		{"[login]\n\ntrusted_proxies = ['10.0.0.0/33']", "3", `login.trusted_proxies: "10.0.0.0/33" is not a network`},
		{"[login]\ntrusted_proxies = ['localhost']", "2", `login.trusted_proxies: "localhost" is not a network`},
		{"[login]\nissuer = 'https://a'", "2", "login.issuer: needs login.client_id"},
		{"[login]\nissuer = 'accounts.example.com'", "2", "login.issuer: must be an absolute http"},
		{"[login]\nissuer = 'https://a/?tenant=b'", "2", "login.issuer: must not contain a query"},
		{"[login]\nclient_secret_file = '/nonexistent'", "2", "login.client_secret_file: open /nonexistent: no such file"},
		{"[login]\nclient_secret = 'secret'", "2", "login.client_secret: is not a known key"},
		{"[login]\nroles_claim = ''", "2", "login.roles_claim: must not be empty"},
		{"[login]\nviewers = 'staff'", "2", "login.viewers: must be an array of strings"},
		{"[login]\nadmins = ['']", "2", "login.admins: must not be empty"},
		{"[login]\nuser_header = 'X User'", "2", `login.user_header: "X User" is not the name of a header`},
		{"[login]\ngroups_header = 'cookie'", "2", "login.groups_header: Cookie is reserved"},
		{"[gateway]\nlisten = '0.0.0.0:80'\n[login]\nuser_header = 'X-User'", "2", "gateway.listen: 0.0.0.0:80 can be reached from other machines"},
		{"[bot]\noperators = [1]", "2", "bot.operators: must be an array of strings"},
		{"[bot]\noperators = ['']", "2", "bot.operators: must not be empty"},
		{"[bot]\nteam_api_url = 'https://a/?b'", "2", "bot.team_api_url: must not contain a query"},
		{"[projects]\nname = 'a'", "1", "projects: must be written [[projects]]"},
		{"projects.name = 'a'", "1", "projects.name: must be below [[projects]]"},
		{"projects = 'a'", "1", "projects: must be a table"},
		{"projects = ['a']", "1", "projects: must be tables"},
		{"[[projects]]\nname = 'a'", "1", "projects: url is missing"},
		{"[[projects]]\nurl = 'http://a'", "1", "projects: name is missing"},
		{"[[projects]]\nname = 1\nurl = 'http://a'", "2", "projects.name: must be a string"},
		{"[[projects]]\nname = ''\nurl = 'http://a'", "2", "projects.name: must not be empty"},
		{"[[projects]]\nname = 'a'\nurl = 'a'", "3", "projects.url: must begin with http://"},
		{"[[projects]]\nname = 'a'\nurl = 'http://a'\ntoken = 'x'", "4", "projects.token: is not a known key"},
		{"[[projects]]\nname = 'a'\nurl = 'http://a'\n[[projects]]\nname = 'a '\nurl = 'http://b'", "5", `projects.name: project "a" is listed twice`},
		{"[gateway]\nlisten = localhost", "2", ""},
		{"[gateway\n", "1", ""},
		{"[gateway]\ndata = 'a'\ndata = 'b'", "3", ""},
		{"[gateway]\nlisten = '0.0.0.0:80'", "2", "gateway.listen: 0.0.0.0:80 can be reached from other machines"},
		{"[gateway]\nadmin_token_file = '/nonexistent'", "2", "gateway.admin_token_file: open /nonexistent: no such file"},
	} {
		_, err := load(t, c.file, nil, nil)
		if err == nil {
			t.Errorf("%q: no error", c.file)
			continue
		}
		if !strings.Contains(err.Error(), "/switchyard.toml:"+c.line+": "+c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %q, want line %s: %s", c.file, err, c.line, c.says)
		}
	}
}

func TestAMistakeInAFlagOrVariableIsNamed(t *testing.T) {
	for _, c := range []struct {
		variable, flag string
		says           string
	}{
		{"", "--listen=", "--listen: "},
		{"", "--listen=3000", "--listen: "},
		{"", "--poll-interval=soon", "--poll-interval: "},
		{"", "--allow-host=a/b", "--allow-host: "},
		{"", "--data=", "--data: must not be empty"},
		{"", "--config=", "--config: must not be empty"},
		{"", "--config=/nonexistent", "--config: stat /nonexistent: no such file"},
		{"", "--config=/", "--config: read /: is a directory"},
		{"SWITCHYARD_CONFIG=/", "", "SWITCHYARD_CONFIG: read /: is a directory"},
		{"", "--admin-token-file=/nonexistent", "--admin-token-file: open /nonexistent"},
		{"", "--listen=192.0.2.1:80", "--listen: 192.0.2.1:80 can be reached from other machines"},
		{"", "--listen=:80", "--listen: :80 can be reached from other machines"},
		{"", "--listen=[::]:80", "--listen: [::]:80 can be reached from other machines"},
		{"", "--listen=example.com:80", "--listen: example.com:80 can be reached from other machines"},
		{"SWITCHYARD_CONFIG=/nonexistent", "", "SWITCHYARD_CONFIG: "},
		{"SWITCHYARD_LISTEN=x", "", "SWITCHYARD_LISTEN: "},
		{"SWITCHYARD_LISTEN=0.0.0.0:0", "", "SWITCHYARD_LISTEN: 0.0.0.0:0 can be reached from other machines"},
		{"SWITCHYARD_AGENT_TIMEOUT=45", "", "SWITCHYARD_AGENT_TIMEOUT: "},
		{"SWITCHYARD_ALLOW_HOSTS=a,b c", "", "SWITCHYARD_ALLOW_HOSTS: "},
		{"SWITCHYARD_OAUTH_TOKEN_URL=x", "", "SWITCHYARD_OAUTH_TOKEN_URL: "},
		{"SWITCHYARD_ADMIN_TOKEN= ", "", "SWITCHYARD_ADMIN_TOKEN: holds no token"},
		{"SWITCHYARD_ADMIN_TOKEN=secret words", "", "SWITCHYARD_ADMIN_TOKEN: the token must be"},
		{"SWITCHYARD_ADMIN_TOKEN_FILE=/dev/null", "", "SWITCHYARD_ADMIN_TOKEN_FILE: read /dev/null: is not a regular file"},
		{"SWITCHYARD_ALLOW_UNAUTHENTICATED=sure", "", `SWITCHYARD_ALLOW_UNAUTHENTICATED: "sure" is neither true nor false`},
		{"SWITCHYARD_PUBLIC_URL=yard.example", "", "SWITCHYARD_PUBLIC_URL: must be an absolute http"},
		{"", "--public-url=https://yard.example/?a", "--public-url: must not contain a query"},
		{"", "--public-url=https://example.org/yard/", "--public-url: must not contain a path"},
		{"", "--database=mysql://me:secret@db/yard", "--database: must be an address that begins with postgres://"},
		{"", "--database=host=db password=secret", "--database: must be an address that begins with postgres://"},
		{"", "--database=postgres://me:secret%zz@db/yard", "--database: has a % that no two hexadecimal digits follow: write %25"},
		{"", "--database=postgres://me:se/cret@db/yard", "--database: cannot be read: check host and port"},
		{"SWITCHYARD_DATABASE=/var/secret", "", "SWITCHYARD_DATABASE: must be an address that begins with postgres://"},
		{"SWITCHYARD_OAUTH_TOKEN_FORMAT=xml", "", "SWITCHYARD_OAUTH_TOKEN_FORMAT: must be one of json, form"},
		{"SWITCHYARD_LOGIN_CLIENT_SECRET=secret words", "", "SWITCHYARD_LOGIN_CLIENT_SECRET: the token must be"},
		{"SWITCHYARD_OAUTH_SCOPES= ", "", "SWITCHYARD_OAUTH_SCOPES: must not be empty"},
	} {
		var variables, flags []string
		if c.variable != "" {
			variables = []string{c.variable}
		}
		if c.flag != "" {
			flags = []string{c.flag}
		}
		_, err := load(t, "", variables, flags)
		if err == nil || !strings.HasPrefix(err.Error(), c.says) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s%s: %v, want %q", c.variable, c.flag, err, c.says)
		}
		var ofFlag config.FlagError
		if errors.As(err, &ofFlag) != (c.flag != "") {
			t.Errorf("%s%s: %T is a FlagError: %v", c.variable, c.flag, err, c.variable != "")
		}
	}
}
