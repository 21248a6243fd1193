<?xml version="1.0" encoding="utf-8"?>
<!--
  Puts the photos that a join has found into the text of an item ([RoSeS §3.1]):

    register feed MusePhotoStream apply 'IncludePhotos.xsl' as MuseWithPhotos;

  What comes in is an item with its annotations; what goes out is an item again, with the same
  attributes but a longer content. docs/delivery.md describes both.
-->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:template match="/item">
    <item>
      <xsl:copy-of select="*[not(self::content or self::annotation)]"/>
      <content type="text">
        <xsl:choose>
          <xsl:when test="content"><xsl:value-of select="content"/></xsl:when>
          <xsl:otherwise><xsl:value-of select="description"/></xsl:otherwise>
        </xsl:choose>
        <xsl:apply-templates select="annotation/item"/>
      </content>
    </item>
  </xsl:template>

  <!-- A photo is the enclosure of its item; without one there is only the link. -->
  <xsl:template match="annotation/item[enclosure]">
    <p><a href="{link}"><img src="{enclosure}" alt="{title}"/></a></p>
  </xsl:template>

  <xsl:template match="annotation/item[not(enclosure)]">
    <p><a href="{link}"><xsl:value-of select="title"/></a></p>
  </xsl:template>
</xsl:stylesheet>
