package config

// Unset returns the keys of all settings that a file does not set.
func Unset(path string) (keys []string, err error) {
	c := &Config{}
	file, err := readFile(path, c.settings())
	if err != nil {
		return nil, err
	}
	for _, s := range c.settings() {
		if _, set := file.settings[s.key]; !set {
			keys = append(keys, s.key)
		}
	}
	return keys, nil
}
