package sources

import (
	"bytes"
	"io"
)

// pageLines keeps of what is read through it what is said of a page in place of a list:
// how many lines it has, and the first few of them.
type pageLines struct {
	r       io.Reader
	number  int      // of the line that is read, from 0
	lines   int      // so far, that are not blank
	samples []Reject // of these, the first few; Text is raw
	text    []byte   // of the line that is read, its beginning
	filled  bool     // the line that is read is not blank
}

// lineSample is how much of a line is kept.
const lineSample = 512

func (p *pageLines) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	for rest := b[:n]; len(rest) > 0; {
		line, next, ended := bytes.Cut(rest, []byte("\n"))
		if room := lineSample - len(p.text); room > 0 && len(p.samples) < maxSamples {
			p.text = append(p.text, line[:min(len(line), room)]...)
		}
		p.filled = p.filled || len(bytes.TrimSpace(line)) > 0
		if ended {
			p.endLine()
		}
		rest = next
	}
	return n, err
}

func (p *pageLines) endLine() {
	if p.filled {
		p.lines++
		if len(p.samples) < maxSamples {
			p.samples = append(p.samples, Reject{Line: p.number + 1, Text: string(bytes.TrimSpace(p.text))})
		}
	}
	p.number++
	p.text, p.filled = p.text[:0], false
}

// reject reads to the page's end, and rejects its lines as a list's.
func (p *pageLines) reject(c *collector) error {
	if _, err := io.Copy(io.Discard, p); err != nil {
		return err
	}
	p.endLine()
	for i := range p.lines {
		sample := Reject{}
		if i < len(p.samples) {
			sample = p.samples[i]
		}
		c.begin(sample.Line)
		c.reject(reasonUnparseable, sample.Text, showLine)
	}
	c.formats["plain"] += p.lines
	return ErrMarkup
}
