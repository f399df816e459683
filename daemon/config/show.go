package config

import (
	"bytes"
	"encoding/json"

	"github.com/goccy/go-yaml"
)

// MarshalYAML returns the configuration as it is in effect, defaults included,
// as a file that Parse reads. Secrets in URLs are ***: a file with any is for
// reading only.
func (c *Config) MarshalYAML() ([]byte, error) {
	return yaml.MarshalWithOptions(c.shown(), yaml.IndentSequence(true))
}

// MarshalJSON returns the same as JSON, with the file's keys in the file's order.
func (c *Config) MarshalJSON() ([]byte, error) {
	return orderedJSON(c.shown())
}

func (c *Config) shown() yaml.MapSlice {
	s := &section{}
	c.keys(s)
	return s.shown
}

// orderedJSON is json.Marshal for what a section shows: yaml.MapSlice would come
// out sorted.
func orderedJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	switch v := v.(type) {
	case yaml.MapSlice:
		if len(v) == 0 {
			return []byte("{}"), nil
		}
		for i, item := range v {
			b.WriteByte("{,"[min(i, 1)])
			if err := appendJSON(&b, item.Key, ':'); err != nil {
				return nil, err
			}
			if err := appendJSON(&b, item.Value, 0); err != nil {
				return nil, err
			}
		}
		b.WriteByte('}')
		return b.Bytes(), nil
	case []any:
		if len(v) == 0 {
			return []byte("[]"), nil
		}
		for i, item := range v {
			b.WriteByte("[,"[min(i, 1)])
			if err := appendJSON(&b, item, 0); err != nil {
				return nil, err
			}
		}
		b.WriteByte(']')
		return b.Bytes(), nil
	}
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // a & in a URL stays one
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

func appendJSON(b *bytes.Buffer, v any, after byte) error {
	data, err := orderedJSON(v)
	b.Write(data)
	if after != 0 {
		b.WriteByte(after)
	}
	return err
}
