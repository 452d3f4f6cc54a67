package lullbolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"time"
)

// ErrDamaged is the error for a file that something other than this package has changed: a disk, an
// incomplete copy, an editor. The file was not changed, and nothing in it is trusted.
var ErrDamaged = errors.New("lullbolt: the file is damaged")

// ErrUnchecked is the error of Open if the file could not be checked within Config.CheckTimeout.
var ErrUnchecked = errors.New("lullbolt: the file is not checked yet")

// bbolt trusts its file. A page number out of range, or a file that was cut off, is a panic in a
// goroutine of its own or a fault in mapped memory, and ends the process. With a changed number of
// elements, keys are forgotten. So before bbolt maps the file, a checker reads everything that is
// reachable, by its format (version 2, in the byte order of the machine):
//
//	page    id 8, flags 2, count 2, overflow 4, elements of 16 bytes, data
//	branch  pos 4, key size 4, page 8           pos is from the element's own place
//	leaf    flags 4, pos 4, key size 4, value size 4
//	bucket  root page 8 (0: the page follows), sequence 8
//	meta    magic 4, version 4, page size 4, flags 4, root bucket 16, freelist 8,
//	        pages 8, transaction 8, FNV-1a of these
const (
	pageHeader   = 16
	elementSize  = 16
	bucketHeader = 16
	metaSize     = 64

	flagBranch   = 1
	flagLeaf     = 2
	flagFreelist = 0x10
	flagBucket   = 1 // of an element

	boltMagic   = 0xED0CDAED
	boltVersion = 2
	noFreelist  = ^uint64(0)
	maxDepth    = 64 // no tree is as deep
)

var native = binary.NativeEndian

type checker struct {
	file  io.ReaderAt
	until time.Time // zero: no bound
	page  int64     // bytes of a page
	pages uint64    // in use, or free to be used
	seen  []uint64  // a bit for each page
	read  uint64
	bufs  [][]byte // buffers by depth

	sum, want entryTotals
	hasTotal  bool // there is a sum to compare with
	buckets   int
}

func damagedf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// checkFile reads the file at path. Nobody may write to it meanwhile.
func checkFile(path string, limit time.Duration) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	c := &checker{file: f, until: time.Now().Add(limit)}
	err = c.check(info.Size())
	if errors.Is(err, ErrUnchecked) {
		err = fmt.Errorf("%w: %d of %d pages read within %v: give Config.CheckTimeout more time, or -1 to open it without", err, c.read, c.pages, limit)
	}
	return err
}

// meta is the part of a meta page that the checker needs.
type meta struct {
	pageSize              int64
	root, freelist, pages uint64
	txid                  uint64
}

func (c *checker) readMeta(at int64) (m meta, err error) {
	var b [pageHeader + metaSize]byte
	if _, err := c.file.ReadAt(b[:], at); err != nil {
		return m, damagedf("the meta page at byte %d cannot be read: %v", at, err)
	}
	v := b[pageHeader:]
	sum := fnv.New64a()
	sum.Write(v[:metaSize-8])
	if native.Uint32(v) != boltMagic || native.Uint32(v[4:]) != boltVersion || native.Uint64(v[metaSize-8:]) != sum.Sum64() {
		return m, damagedf("the meta page at byte %d is invalid; what was stored last may be lost", at)
	}
	m = meta{
		pageSize: int64(native.Uint32(v[8:])), root: native.Uint64(v[16:]), freelist: native.Uint64(v[32:]),
		pages: native.Uint64(v[40:]), txid: native.Uint64(v[48:]),
	}
	if m.pageSize < 512 || m.pageSize > 1<<24 || m.pageSize&(m.pageSize-1) != 0 {
		return m, damagedf("a page has %d bytes", m.pageSize)
	}
	return m, nil
}

func (c *checker) check(size int64) error {
	m, err := c.readMeta(0)
	if err != nil {
		return err
	}
	other, err := c.readMeta(m.pageSize)
	if err != nil {
		return err
	}
	if other.txid > m.txid {
		m, other = other, m
	}
	// Each commit writes one of them, in turn.
	if other.pageSize != m.pageSize || other.txid+1 != m.txid {
		return damagedf("its meta pages are of transactions %d and %d, and should be neighbours", other.txid, m.txid)
	}
	if m.pages > uint64(size/m.pageSize) {
		return damagedf("it has %d bytes, and %d pages of %d in use: it was cut off", size, m.pages, m.pageSize)
	}
	c.page, c.pages = m.pageSize, m.pages
	c.seen = make([]uint64, m.pages/64+1)
	c.seen[0] = 3 // the meta pages
	if err := c.tree(m.root, nil, nil, 0, c.visitBucket); err != nil {
		return err
	}
	if c.buckets == 0 && m.txid > 1 {
		return damagedf("there is nothing in it after transaction %d", m.txid)
	}
	if c.hasTotal && c.sum != c.want {
		return damagedf("it has %d entries with the sum %x, and should have %d with %x", c.sum.entries, c.sum.sum, c.want.entries, c.want.sum)
	}
	if m.freelist != noFreelist {
		return c.free(m.freelist)
	}
	return nil
}

// readPage reads a page with its overflow. No other page may refer to it. size returns how many bytes
// of it are in use, by its first page. readPage reads no more than that, whatever overflow the page
// announces.
func (c *checker) readPage(id uint64, depth int, size func(first []byte) uint64) ([]byte, error) {
	if id >= c.pages {
		return nil, damagedf("it refers to page %d of %d", id, c.pages)
	}
	if c.read++; time.Now().After(c.until) {
		return nil, ErrUnchecked
	}
	for len(c.bufs) <= depth {
		c.bufs = append(c.bufs, make([]byte, c.page))
	}
	b := c.bufs[depth]
	if _, err := c.file.ReadAt(b[:c.page], int64(id)*c.page); err != nil {
		return nil, damagedf("page %d cannot be read: %v", id, err)
	}
	overflow := uint64(native.Uint32(b[12:]))
	if native.Uint64(b) != id || overflow >= c.pages-id {
		return nil, damagedf("page %d is something else", id)
	}
	n := size(b[:c.page])
	if n > (overflow+1)*uint64(c.page) {
		return nil, damagedf("page %d has not the %d bytes that are in it", id, n)
	}
	for i := id; i <= id+overflow; i++ { // below c.pages
		if c.seen[i/64]>>(i%64)&1 != 0 {
			return nil, damagedf("page %d belongs to two others", i)
		}
		c.seen[i/64] |= 1 << (i % 64)
	}
	if n <= uint64(c.page) {
		return b[:c.page], nil
	}
	if n > uint64(len(b)) {
		b = append(make([]byte, 0, n), b[:c.page]...)[:n]
		c.bufs[depth] = b
	}
	if _, err := c.file.ReadAt(b[c.page:n], int64(id+1)*c.page); err != nil {
		return nil, damagedf("page %d cannot be read: %v", id, err)
	}
	return b[:n], nil
}

// treeSize returns where the last element of a tree's page ends.
func treeSize(first []byte) uint64 {
	count := int(native.Uint16(first[10:]))
	at := pageHeader + (count-1)*elementSize
	if count == 0 || at+elementSize > len(first) {
		return 0 // elements reports it
	}
	_, from, k, v := element(first, at)
	return from + k + v
}

// element returns an element's page or flags, where its key begins, and the lengths of key and
// value.
func element(b []byte, at int) (what, from, key, value uint64) {
	e := b[at : at+elementSize]
	if native.Uint16(b[8:]) == flagBranch {
		return native.Uint64(e[8:]), uint64(at) + uint64(native.Uint32(e)), uint64(native.Uint32(e[4:])), 0
	}
	return uint64(native.Uint32(e)), uint64(at) + uint64(native.Uint32(e[4:])), uint64(native.Uint32(e[8:])), uint64(native.Uint32(e[12:]))
}

// visitor gets the elements of leaves.
type visitor func(depth int, flags uint32, key, value []byte) error

// tree reads the page id and the pages under it. Its keys are from low on, and below high.
func (c *checker) tree(id uint64, low, high []byte, depth int, visit visitor) error {
	if depth > maxDepth {
		return damagedf("page %d is %d levels deep", id, depth)
	}
	b, err := c.readPage(id, depth, treeSize)
	if err != nil {
		return err
	}
	return c.elements(b, low, high, depth, visit)
}

// elements reads the elements of a page, or of a bucket inside its parent's page.
func (c *checker) elements(b, low, high []byte, depth int, visit visitor) error {
	if len(b) < pageHeader {
		return damagedf("a page has %d bytes", len(b))
	}
	id, flags, count := native.Uint64(b), native.Uint16(b[8:]), int(native.Uint16(b[10:]))
	if flags != flagBranch && flags != flagLeaf {
		return damagedf("page %d is neither a branch nor a leaf", id)
	}
	data := pageHeader + count*elementSize
	if data > len(b) || flags == flagBranch && count == 0 {
		return damagedf("page %d cannot have %d elements", id, count)
	}
	part := func(i int) (what uint64, key, value []byte, err error) {
		what, from, k, v := element(b, pageHeader+i*elementSize)
		if from < uint64(data) || k == 0 || from+k+v > uint64(len(b)) {
			return 0, nil, nil, damagedf("element %d of page %d is not within it", i, id)
		}
		return what, b[from : from+k : from+k], b[from+k : from+k+v : from+k+v], nil
	}
	var last []byte
	for i := range count {
		what, key, value, err := part(i)
		if err != nil {
			return err
		}
		if bytes.Compare(key, low) < 0 || i > 0 && bytes.Compare(key, last) <= 0 || high != nil && bytes.Compare(key, high) >= 0 {
			return damagedf("element %d of page %d is out of order", i, id)
		}
		last = key
		if flags == flagLeaf {
			if err := visit(depth, uint32(what), key, value); err != nil {
				return err
			}
			continue
		}
		below := high
		if i+1 < count {
			if _, below, _, err = part(i + 1); err != nil {
				return err
			}
		}
		if err := c.tree(what, key, below, depth+1, visit); err != nil {
			return err
		}
	}
	return nil
}

// visitBucket is the visitor of the root, whose elements are buckets.
func (c *checker) visitBucket(depth int, flags uint32, name, value []byte) error {
	if flags != flagBucket || len(value) < bucketHeader {
		return damagedf("%q is no bucket", name)
	}
	c.buckets++
	visit := c.visitOther
	switch {
	case bytes.Equal(name, bucketKeys):
		visit = c.visitEntry
	case bytes.Equal(name, bucketFile):
		visit = c.visitField
	}
	if root := native.Uint64(value); root != 0 {
		return c.tree(root, nil, nil, depth+1, visit)
	}
	return c.elements(value[bucketHeader:], nil, nil, depth, visit)
}

func (c *checker) visitEntry(_ int, flags uint32, key, value []byte) error {
	if flags != 0 {
		return damagedf("key %q is no entry", key)
	}
	if _, err := decode(key, value); err != nil {
		return damagedf("the entry of key %q: %v", key, err)
	}
	c.sum.add(value)
	return nil
}

func (c *checker) visitField(_ int, flags uint32, key, value []byte) error {
	if flags != 0 {
		return damagedf("%q is no field", key)
	}
	if bytes.Equal(key, fieldTotal) {
		c.hasTotal = true
		var err error
		c.want, err = decodeTotal(value)
		return err
	}
	return nil
}

// visitOther is the visitor of buckets that are not this package's. Open reports them.
func (c *checker) visitOther(depth int, flags uint32, key, value []byte) error {
	if flags == flagBucket {
		return c.visitBucket(depth, flags, key, value)
	}
	return nil
}

// free reads the list of free pages, which other programs write. No page in it may be in use.
func (c *checker) free(id uint64) error {
	b, err := c.readPage(id, 0, func(first []byte) uint64 {
		n, at := freeCount(first)
		return at + 8*min(n, c.pages)
	})
	if err != nil {
		return err
	}
	count, at := freeCount(b)
	if native.Uint16(b[8:]) != flagFreelist || count > c.pages {
		return damagedf("page %d is no list of free pages", id)
	}
	for i := range count {
		free := native.Uint64(b[at+8*i:])
		if free >= c.pages || c.seen[free/64]>>(free%64)&1 != 0 {
			return damagedf("page %d is in the list of free pages", free)
		}
		c.seen[free/64] |= 1 << (free % 64)
	}
	return nil
}

// freeCount returns how many numbers a list of free pages has, and where they begin.
func freeCount(first []byte) (n, at uint64) {
	if n = uint64(native.Uint16(first[10:])); n == 0xffff {
		return native.Uint64(first[pageHeader:]), pageHeader + 8
	}
	return n, pageHeader
}
