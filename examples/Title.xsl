<?xml version="1.0" encoding="utf-8"?>
<!--
  The title of an item and nothing else, for a short mail ([RoSeS §3.1]):

    subscribe to RockConcertStream apply 'Title.xsl' output mail 'me@mail.org' every 3 hours;
-->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="text"/>
  <xsl:template match="/item"><xsl:value-of select="title"/></xsl:template>
</xsl:stylesheet>
