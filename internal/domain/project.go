package domain

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a project entry, in characters after trimming.
const (
	MaxProjectName  = 100
	MaxProjectURL   = 2000
	MaxProjectToken = 1000
)

// Project is an entry of the registry. Token, when set, is sent to the project server as a bearer token.
type Project struct {
	Name  string
	URL   string
	Token Secret
}

// NewProject trims Unicode white space from name and url and checks both. It returns an Invalid error that names the
// field and the reason.
func NewProject(name, url string) (Project, error) {
	p := Project{Name: strings.TrimSpace(name), URL: strings.TrimSpace(url)}
	if err := CheckProjectName(p.Name); err != nil {
		return Project{}, err
	}
	if err := checkProjectURL(p.URL); err != nil {
		return Project{}, err
	}
	return p, nil
}

// CheckProjectName returns an Invalid error unless name, already trimmed, is valid for a project.
func CheckProjectName(name string) error {
	switch {
	case name == "." || name == "..":
		return Errorf(Invalid, "name: must not be %q", name)
	case !utf8.ValidString(name):
		return Errorf(Invalid, "name: must be UTF-8")
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.Is(unicode.Cf, r) }):
		return Errorf(Invalid, "name: must not contain invisible formatting characters")
	}
	return checkName("name", name, MaxProjectName)
}

// visible reports whether r is visible by itself. Some letters and symbols are blank: fillers and the empty Braille
// cell.
func visible(r rune) bool {
	const emptyBraille = '\u2800'
	return unicode.IsGraphic(r) && r != emptyBraille &&
		!unicode.In(r, unicode.White_Space, unicode.M, unicode.Other_Default_Ignorable_Code_Point)
}

func checkProjectURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return Errorf(Invalid, "url: must not be empty")
	case utf8.RuneCountInString(text) > MaxProjectURL:
		return Errorf(Invalid, "url: must be at most %d characters", MaxProjectURL)
	case !strings.HasPrefix(strings.ToLower(text), "http://") && !strings.HasPrefix(strings.ToLower(text), "https://"):
		return Errorf(Invalid, "url: must begin with http:// or https://")
	case err != nil:
		return Errorf(Invalid, "url: must be a valid address")
	case u.Hostname() == "":
		return Errorf(Invalid, "url: must name a host")
	case u.User != nil:
		return Errorf(Invalid, "url: must not contain a user name or password")
	case u.RawQuery != "" || u.ForceQuery:
		return Errorf(Invalid, "url: must not contain a query")
	case strings.Contains(text, "#"):
		return Errorf(Invalid, "url: must not contain a fragment")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return Errorf(Invalid, "url: the port must be from 1 to 65535")
		}
	}
	return nil
}

// CheckProjectToken returns an Invalid error unless token can be sent in an Authorization header.
func CheckProjectToken(token Secret) error {
	if len(token) > MaxProjectToken {
		return Errorf(Invalid, "token: must be at most %d characters", MaxProjectToken)
	}
	if !token.FitsHeader() {
		return Errorf(Invalid, "token: must be ASCII characters without spaces")
	}
	return nil
}

// Endpoint returns the address of path, which begins with a slash, on the project server. A path in URL is kept,
// without a trailing slash.
func (p Project) Endpoint(path string) string {
	return strings.TrimRight(p.URL, "/") + path
}

func (p Project) SameOrigin(other Project) bool { return origin(p.URL) == origin(other.URL) }

func origin(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text // this cannot happen: it has been checked
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// Removal is the state of a removed project, including its token.
type Removal struct {
	Project Project
	Active  bool     // it was the active project
	Agents  []string // ids of the agents that were assigned to it
}

// Registry is one consistent state of the project registry.
type Registry struct {
	// Version increases with every change.
	Version uint64
	// Active is the name of the active project, "" if there is none.
	Active string
	// Projects is sorted by name, by bytes.
	Projects []Project
}

// Index returns the index of the project with that name, or false and the index at which it would be inserted.
func (r *Registry) Index(name string) (int, bool) {
	return slices.BinarySearchFunc(r.Projects, name,
		func(p Project, name string) int { return strings.Compare(p.Name, name) })
}

func (r *Registry) Find(name string) (Project, bool) {
	i, found := r.Index(name)
	if !found {
		return Project{}, false
	}
	return r.Projects[i], true
}
